"""WordPiece training: cases tok-01 to tok-09, determinism and what the numbers mean."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from transformers import AutoTokenizer, BertTokenizerFast

from components.encoders.wordpiece import SPECIAL_TOKENS, load_wordpiece, piece_ids
from components.errors import ConfigError, InputError
from components.formats import Document, ShardWriter
from components.text.characters import is_control
from components.tokenizer.config import TokenizerConfig
from components.tokenizer.stage import train_tokenizer

ROOT = Path(__file__).parents[3]
ENGLISH = ["the player plays", "players played", "playing the plays", "he played", "works worked working worker"] * 6


def write_corpus(folder, sentences, per_document=10):
    folder.mkdir(parents=True, exist_ok=True)
    writer = ShardWriter(folder, "train")
    for start in range(0, len(sentences), per_document):
        writer.write(Document(f"text.txt:{start + 1}", tuple(sentences[start : start + per_document])))
    writer.close()
    return folder


def train(tmp_path, sentences, name="tokenizer", **settings):
    corpus = write_corpus(tmp_path / f"corpus_{name}", sentences)
    out_dir = tmp_path / name
    out_dir.mkdir()
    config = TokenizerConfig(**{"min_vocab_size": 6, "min_frequency": 1, **settings})
    return train_tokenizer(config, corpus=corpus, out_dir=out_dir), out_dir


def han(count):
    return ["".join(chr(0x4E00 + number) for number in range(start, start + 10)) for start in range(0, count, 10)]


def test_tok_01_no_character_of_the_corpus_becomes_unk(tmp_path):
    metrics, folder = train(tmp_path, han(3000), vocab_size=8000)
    assert metrics["unk_rate"] == 0.0
    assert metrics["alphabet_size"] == 3000
    assert metrics["num_lost_characters"] == 0
    tokenizer = load_wordpiece(folder)
    assert tokenizer.unk_token_id not in tokenizer("".join(han(3000)))["input_ids"]


def test_tok_01_lost_characters_are_counted_and_refused_above_the_limit(tmp_path):
    text = ["的的的的的的的的的一"] * 10
    metrics, _ = train(tmp_path, text, "kept", limit_alphabet=1, max_unk_rate=0.1)
    assert metrics["num_lost_characters"] == 1
    assert metrics["unk_rate"] == pytest.approx(0.1)
    with pytest.raises(InputError, match=r"10 of 100 pieces .*\[UNK\] \(10\.00%, limit 9\.00%\).*'一' x10"):
        train(tmp_path, text, "refused", limit_alphabet=1, max_unk_rate=0.09)


def test_tok_02_vocab_size_below_the_alphabet_is_refused_with_the_minimum(tmp_path):
    with pytest.raises(ConfigError, match="vocab_size 500 is below the minimum 3005"):
        train(tmp_path, han(3000), vocab_size=500)


def test_tok_02_vocabulary_is_never_larger_than_asked(tmp_path):
    minimum = 5 + len(set("".join(ENGLISH)) - {" "}) + len({c for s in ENGLISH for w in s.split() for c in w[1:]})
    for size in (minimum, minimum + 3, minimum + 20):
        metrics, folder = train(tmp_path, ENGLISH, str(size), vocab_size=size)
        assert metrics["vocab_size"] == len(load_wordpiece(folder)) == size
    with pytest.raises(ConfigError, match=f"minimum {minimum}"):
        train(tmp_path, ENGLISH, "small", vocab_size=minimum - 1)


def test_tok_03_real_size_is_reported_and_refused_below_the_floor(tmp_path):
    metrics, folder = train(tmp_path, ["ab ab"], vocab_size=30000)
    # Special tokens, a, b, ##b, ab.
    assert metrics["vocab_size"] == 9
    assert metrics["requested_vocab_size"] == 30000
    assert len((folder / "vocab.txt").read_text().splitlines()) == 9
    with pytest.raises(InputError, match="supports 9 pieces of the 30000 asked for, min_vocab_size is 100"):
        train(tmp_path, ["ab ab"], "floor", vocab_size=30000, min_vocab_size=100)


def test_empty_corpus_is_refused(tmp_path):
    for name, sentences in {"none": [], "blank": ["  ", "\u3000"]}.items():
        with pytest.raises(InputError, match="no text to train on"):
            train(tmp_path, sentences, name)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda lines: [line for line in lines if line != "[UNK]"], r"vocab\.txt:\d+: special token \[UNK\] missing"),
        (lambda lines: [*lines, "[MASK]"], r"vocab\.txt:\d+: piece '\[MASK\]' already on line 5"),
        (lambda lines: [*lines[:6], "", *lines[6:]], r"vocab\.txt:7: blank line"),
        (lambda lines: [*lines[:-2], lines[-1], lines[-2]], r"tokenizer\.json: piece .* has id"),
    ],
)
def test_tok_04_damaged_vocabulary_is_refused_with_file_and_line(tmp_path, change, message):
    _, folder = train(tmp_path, ENGLISH)
    path = folder / "vocab.txt"
    lines = path.read_text().split("\n")[:-1]
    path.write_text("\n".join(change(lines)) + "\n")
    with pytest.raises(InputError, match=message):
        load_wordpiece(folder)


def test_tok_04_special_tokens_come_first(tmp_path):
    _, folder = train(tmp_path, ENGLISH)
    tokenizer = load_wordpiece(folder)
    assert tuple(tokenizer.convert_ids_to_tokens(range(5))) == SPECIAL_TOKENS
    pieces = piece_ids(tokenizer)
    assert (pieces.pad, pieces.cls, pieces.sep, pieces.mask) == (0, 2, 3, 4)
    assert pieces.ordinary.tolist() == list(range(5, len(tokenizer)))


def test_tok_04_vocab_txt_alone_is_enough(tmp_path):
    _, folder = train(tmp_path, ENGLISH)
    expected = load_wordpiece(folder)("he plays")["input_ids"]
    (folder / "tokenizer.json").unlink()
    assert load_wordpiece(folder)("he plays")["input_ids"] == expected


def test_tok_05_special_strings_in_text_stay_text(tmp_path):
    odd = "this [SEP] is [MASK] data [CLS]"
    metrics, folder = train(tmp_path, [odd] * 50 + ENGLISH)
    assert metrics["num_special_strings"] == 150
    assert metrics["unk_rate"] == 0.0
    vocab = load_wordpiece(folder).get_vocab()
    assert not {"sep", "mask", "cls", "##ask", "##ep"} & set(vocab)
    for tokenizer in (load_wordpiece(folder), AutoTokenizer.from_pretrained(folder)):
        specials = set(tokenizer.all_special_ids)
        assert not specials & set(tokenizer(odd, add_special_tokens=False)["input_ids"])
        pair = tokenizer(odd, odd)["input_ids"]
        assert [number for number in pair if number in specials] == [2, 3, 3]
        assert "".join(tokenizer.tokenize("[MASK]")).replace("##", "") == "[mask]"


@pytest.mark.parametrize("flag, words", [(True, ["我", "爱", "nlp"]), (False, ["我爱nlp"])])
def test_tok_06_chinese_splitting_is_stored(tmp_path, flag, words):
    _, folder = train(tmp_path, ["我爱NLP"] * 5, handle_chinese_chars=flag)
    for tokenizer in (load_wordpiece(folder), BertTokenizerFast.from_pretrained(folder)):
        assert tokenizer.tokenize("我爱NLP") == words
    assert json.loads((folder / "tokenizer_config.json").read_text())["tokenize_chinese_chars"] is flag


def test_tok_06_a_mismatch_between_the_files_is_refused(tmp_path):
    _, folder = train(tmp_path, ["我爱NLP"] * 5)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tokenize_chinese_chars": False}))
    with pytest.raises(InputError, match="handle_chinese_chars is True here and tokenize_chinese_chars is False"):
        load_wordpiece(folder)


@pytest.mark.parametrize(
    "strip_accents, lowercase, expected",
    [
        (False, True, {"NFC": "café ångström", "NFD": None}),
        (True, True, {"NFC": "cafe angstrom", "NFD": "cafe angstrom"}),
        (False, False, {"NFC": "café Ångström", "NFD": None}),
        (True, False, {"NFC": "cafe Angstrom", "NFD": "cafe Angstrom"}),
    ],
)
def test_tok_07_accents_follow_their_own_switch(tmp_path, strip_accents, lowercase, expected):
    forms = {form: unicodedata.normalize(form, "café Ångström") for form in ("NFC", "NFD")}
    _, folder = train(
        tmp_path, list(forms.values()), strip_accents=strip_accents, lowercase=lowercase, max_unk_rate=0.0
    )
    tokenizer = load_wordpiece(folder)
    for form, text in forms.items():
        folded = expected[form] or (text.lower() if lowercase else text)
        assert " ".join(tokenizer.tokenize(text)).replace(" ##", "") == folded
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert (settings["strip_accents"], settings["do_lower_case"]) == (strip_accents, lowercase)


LIMITED = """
import resource, sys
from pathlib import Path
from components.tokenizer.config import TokenizerConfig
from components.tokenizer.stage import train_tokenizer
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Path(sys.argv[2]).mkdir()
train_tokenizer(TokenizerConfig(), corpus=Path(sys.argv[1]), out_dir=Path(sys.argv[2]))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024)
"""


def test_tok_08_memory_stays_bounded_on_unsegmented_text(tmp_path):
    generator = 1
    sentences = []
    for _ in range(400):
        characters = []
        for _ in range(1000):
            generator = generator * 1103515245 + 12345 & 0x7FFFFFFF
            characters.append(chr(0x4E00 + (generator >> 8) % 2000))
        sentences.append("".join(characters))
    corpus = write_corpus(tmp_path / "corpus", sentences, per_document=20)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(corpus), str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30)),
    )
    assert done.returncode == 0, done.stderr
    # MiB beyond what importing takes, for 1.2 MB of text in sentences of 1,000 characters.
    assert float(done.stdout) < 60


def test_tok_09_control_characters_are_counted(tmp_path):
    metrics, folder = train(tmp_path, ["a\x00b\x07c\ufffdd\tab" + "a" * 40], max_control_rate=0.1)
    assert metrics["num_control_chars"] == 3
    assert load_wordpiece(folder).tokenize("a\x00b")[0] == load_wordpiece(folder).tokenize("ab")[0]
    assert [is_control(c) for c in "\x00\x07\ufffd\ue000\u200b\t\na 。"] == [True] * 5 + [False] * 5


def test_tok_09_binary_text_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"document text\.txt:1: 3 of 7 characters are control characters"):
        train(tmp_path, ["a\x00b\x07c\ufffdd"])


def test_tok_09_the_count_agrees_with_the_tokenizer(tmp_path):
    _, folder = train(tmp_path, ENGLISH)
    normalize = load_wordpiece(folder).backend_tokenizer.normalizer.normalize_str
    for number in [*range(1, 0x300), 0x200B, 0x2060, 0xAD, 0xE000, 0xFFFD, 0xFEFF, 0x3000, 0x1F600]:
        assert (normalize(f"a{chr(number)}b") == "ab") == is_control(chr(number)), hex(number)


def test_same_input_gives_the_same_bytes(tmp_path):
    words = [f"{a}{b}{c}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
    sentences = [" ".join(words[start : start + 16]) for start in range(0, len(words), 16)]
    folders = [train(tmp_path, sentences, str(number), vocab_size=300)[1] for number in range(5)]
    contents = [{path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in folders]
    assert set(contents[0]) == {"tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert all(content == contents[0] for content in contents)


def test_reload_gives_identical_ids_and_fertility_is_exact(tmp_path):
    metrics, folder = train(tmp_path, [*ENGLISH, "我爱 北京"], vocab_size=60)
    tokenizer = load_wordpiece(folder)
    text = [*ENGLISH, "我爱 北京"]
    encoded = [tokenizer(sentence, add_special_tokens=False)["input_ids"] for sentence in text]
    assert [AutoTokenizer.from_pretrained(folder)(s, add_special_tokens=False)["input_ids"] for s in text] == encoded
    num_pieces = sum(map(len, encoded))
    assert metrics["num_pieces"] == num_pieces
    assert metrics["num_chars"] == sum(len("".join(sentence.split())) for sentence in text)
    assert metrics["pieces_per_char"] == pytest.approx(num_pieces / metrics["num_chars"])
    num_words = sum(len(sentence.split()) for sentence in ENGLISH) + 4
    assert metrics["pieces_per_word"] == pytest.approx(num_pieces / num_words)
