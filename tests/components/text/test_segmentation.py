"""Word segmentation: same words as jieba, user dictionary, saved and restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.errors import ArtifactError, InputError
from components.text.segmentation import Segmenter, SegmenterConfig, load_segmenter

CHINESE = Segmenter(SegmenterConfig())
ENGLISH = Segmenter(SegmenterConfig(language="en"))


def test_words() -> None:
    assert CHINESE.segment("我来到北京清华大学。 3.14元") == ["我", "来到", "北京", "清华大学", "。", "3.14", "元"]
    assert Segmenter(SegmenterConfig(segmenter="characters")).segment("我来 a") == ["我", "来", "a"]
    assert ENGLISH.segment("Don't pay $1,000.50 for cafe\u0301, state-of-the-art 中文x.") == [
        "Don't", "pay", "$", "1,000.50", "for", "cafe\u0301", ",", "state", "-", "of", "-", "the", "-", "art", "中", "文", "x", ".",
    ]  # fmt: skip


def test_text_07_single_characters_are_words() -> None:
    assert CHINESE.segment("我 爱 你") == ["我", "爱", "你"]
    assert len(CHINESE.segment("我爱你今天很冷。")) > 3


@pytest.mark.parametrize("segmenter", [CHINESE, ENGLISH])
@given(text=st.text(max_size=40))
def test_words_hold_every_visible_character_in_order(segmenter: Segmenter, text: str) -> None:
    words = segmenter.segment(text)
    assert "".join(words) == "".join(text.split())
    assert all(word.split() == [word] for word in words)


def test_agrees_with_jieba_on_news() -> None:
    import jieba

    from components.corpus.config import CorpusSource
    from components.text.articles import untag

    jieba.setLogLevel(60)
    path = CorpusSource().files()[0]
    with path.open(encoding="utf-8", newline="\n") as stream:
        lines = [untag(line) for _, line in zip(range(1000), stream, strict=False)]
    differing = [line for line in lines if [w for w in jieba.cut(line) if w.strip()] != CHINESE.segment(line)]
    assert len(differing) <= 1, differing[:3]


def test_user_dictionary_joins_a_word_and_is_private_to_its_segmenter(tmp_path: Path) -> None:
    text = "台中和云网智联公司"
    assert "云网智联" not in CHINESE.segment(text)
    path = tmp_path / "words.txt"
    path.write_text("\ufeff云网智联\n\n石墨烯电池 20000 n\n", encoding="utf-8")
    config = SegmenterConfig(user_dictionary=str(path))
    assert config.external_files() == [path]
    assert "云网智联" in Segmenter(config).segment(text)
    assert "石墨烯电池" in Segmenter(config).segment("新的石墨烯电池很好")
    assert "云网智联" not in Segmenter(SegmenterConfig()).segment(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("好词\n《红楼梦》\n", r"words\.txt:2: word '《红楼梦》' cannot be one word"),
        ("好词 十 n x\n", r"words\.txt:1: .* is not 'word \[frequency \[tag\]\]'"),
    ],
)
def test_unusable_user_dictionary_is_refused_with_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Segmenter(SegmenterConfig(user_dictionary=str(path)))


def test_missing_or_wrongly_encoded_user_dictionary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        Segmenter(SegmenterConfig(user_dictionary=str(tmp_path / "none.txt")))
    path = tmp_path / "gbk.txt"
    path.write_bytes("云网智联\n".encode("gb18030"))
    with pytest.raises(InputError, match="cannot be read"):
        Segmenter(SegmenterConfig(user_dictionary=str(path)))


def test_user_dictionary_that_does_not_apply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("word\n", encoding="utf-8")
    with pytest.raises(InputError, match="does not apply to language en"):
        Segmenter(SegmenterConfig(language="en", user_dictionary=str(path)))


def test_saved_segmenter_is_self_contained(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("云网智联\n", encoding="utf-8")
    folder = tmp_path / "artifact"
    folder.mkdir()
    segmenter = Segmenter(SegmenterConfig(user_dictionary=str(path)))
    segmenter.save(folder)
    path.unlink()
    assert str(tmp_path) not in (folder / "segmenter.json").read_text(encoding="utf-8")
    assert load_segmenter(folder).segment("云网智联公司") == ["云网智联", "公司"]


def test_segmenter_of_another_version_is_refused_and_another_library_reported(tmp_path: Path) -> None:
    CHINESE.save(tmp_path)
    path = tmp_path / "segmenter.json"
    saved = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**saved, "rjieba": "0.0.1"}), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"made with rjieba 0\.0\.1"):
        load_segmenter(tmp_path)
    path.write_text(json.dumps({**saved, "version": 0}), encoding="utf-8")
    with pytest.raises(ArtifactError, match="segmenter version 0"):
        load_segmenter(tmp_path)
