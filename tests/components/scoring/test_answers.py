from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.scoring.answers import answer_scores, normalize_answer

CHINESE = [
    # prediction, gold answers, exact match, F1 as shared and total tokens: F1 = 2 * shared / (predicted + gold)
    ("北京市", ["北京"], False, 4 / 5),
    ("北京", ["北京市"], False, 4 / 5),
    ("１９９０年", ["1990年"], True, 1),
    ("1990年", ["1990"], False, 2 / 3),
    ("1990年5月", ["1990年6月"], False, 4 / 8),
    ("199年", ["1990年"], False, 2 / 4),
    ("二〇〇八年", ["２００８年"], False, 2 / 7),
    ("三", ["三"], True, 1),
    ("三", ["四"], False, 0),
    ("3", ["３"], True, 1),
    ("", [], True, 1),
    ("", [""], True, 1),
    ("", ["北京"], False, 0),
    ("", ["。"], False, 0),
    ("北京", [], False, 0),
    ("。", [], False, 0),
    ("。", ["。"], True, 1),
    ("。", ["！"], False, 0),
    ("，", [","], True, 1),
    ("《红楼梦》", ["红楼梦"], True, 1),
    ("红楼梦。", ["红楼梦"], True, 1),
    ("“红楼梦”", ["《红楼梦》"], True, 1),
    ("国民党、共产党", ["国民党共产党"], True, 1),
    ("约翰·史密斯", ["约翰史密斯"], True, 1),
    ("J.K.罗琳", ["JK罗琳"], True, 1),
    ("A-B", ["ab"], True, 1),
    ("1,000人", ["1，000人"], True, 1),
    ("3.5%", ["3.5％"], True, 1),
    ("35%", ["3.5%"], False, 0),
    ("iPhone 6S", ["iphone 6s"], True, 1),
    ("iPhone6S", ["iPhone 6S"], False, 0),
    ("用iPhone拍照", ["iPhone"], False, 2 / 5),
    ("北京 大学", ["北京大学"], True, 1),
    ("清华大学和北京大学", ["北京大学"], False, 8 / 13),
    # The longest contiguous run is one character, though all four are there.
    ("北大京学", ["北京大学"], False, 2 / 8),
    ("周杰倫", ["周杰伦"], False, 4 / 6),
    ("共产党", ["国民党", "共产党"], True, 1),
    ("民党", ["共产党", "国民党"], False, 4 / 5),
    ("北京，上海", ["北京", "上海"], False, 4 / 6),
    ("㎏", ["kg"], True, 1),
    ("𠮷野家", ["野家"], False, 4 / 5),
]
ENGLISH = [
    ("The Cat", ["cat"], True, 1),
    ("an apple a day", ["apple day"], True, 1),
    ("cat sat", ["the cat sat down"], False, 4 / 5),
    ("U.S.", ["US"], True, 1),
    ("3.5", ["35"], True, 1),
    ("don't", ["dont"], True, 1),
    ("Denver Broncos", ["Broncos", "Denver"], False, 2 / 3),
    ("dog", ["cat"], False, 0),
    ("cat cat", ["cat"], False, 2 / 3),
    ("down the hill", ["hill down"], False, 1),
    ("Beyoncé", ["beyonce"], False, 0),
    ("10–12", ["1012"], False, 0),
    ("５", ["5"], False, 0),
    (" a   b ", ["b"], True, 1),
    ("", [], True, 1),
    ("", ["cat"], False, 0),
    ("cat", [], False, 0),
    ("the", [], False, 0),
    ("the", ["The"], True, 1),
    ("the", ["a"], False, 0),
]


@pytest.mark.parametrize(("prediction", "golds", "exact_match", "f1"), CHINESE)
def test_ft_11_chinese_golden_table(prediction: str, golds: list[str], exact_match: bool, f1: float) -> None:
    assert answer_scores(prediction, golds, "zh") == (exact_match, pytest.approx(f1))


@pytest.mark.parametrize(("prediction", "golds", "exact_match", "f1"), ENGLISH)
def test_english_golden_table(prediction: str, golds: list[str], exact_match: bool, f1: float) -> None:
    assert answer_scores(prediction, golds, "en") == (exact_match, pytest.approx(f1))


def test_peer_bug_3_one_character_answers_count() -> None:
    """White space F1 is 0 or 1 for Chinese, and a peer scores one-character answers zero."""
    assert answer_scores("王", ["王"], "zh") == (True, 1.0)
    assert answer_scores("老王", ["王"], "zh") == (False, pytest.approx(2 / 3))


def test_normalized_answers_are_readable() -> None:
    assert normalize_answer("　《Harry Potter》第１部，Ａ B。", "zh") == "harry potter第1部a b"
    assert normalize_answer("  The  Dog's,  an Owl ", "en") == "dogs owl"


ANSWERS = st.text("北京大学院。，.1２ aB the-", max_size=8)


@settings(max_examples=300, deadline=None)
@given(ANSWERS, ANSWERS, st.sampled_from(["zh", "en"]))
def test_exact_match_is_equality_of_normalized_answers(prediction: str, gold: str, language: str) -> None:
    exact_match, f1 = answer_scores(prediction, [gold], language)
    assert exact_match == (normalize_answer(prediction, language) == normalize_answer(gold, language))
    assert 0 <= f1 <= 1
    assert not exact_match or f1 == 1
    assert answer_scores(gold, [gold], language) == (True, 1.0)
    assert f1 == answer_scores(gold, [prediction], language)[1]


def script_f1(prediction: str, gold: str) -> float:
    """The published F1 on Chinese characters and listed punctuation alone, where segmentation cannot matter."""
    one, two = (text.replace("，", "").replace("。", "") for text in (prediction, gold))
    runs = [one[i:j] for i in range(len(one)) for j in range(i + 1, len(one) + 1) if one[i:j] in two]
    longest = max(map(len, runs), default=0)
    if not longest:
        return 0.0
    precision, recall = longest / len(one), longest / len(two)
    return 2 * precision * recall / (precision + recall)


@settings(max_examples=300, deadline=None)
@given(st.text("北京大学，。", max_size=9), st.text("北京大学，。", max_size=9))
def test_chinese_f1_is_the_published_one(prediction: str, gold: str) -> None:
    if set(prediction) <= {"，", "。"} or set(gold) <= {"，", "。"}:
        return  # Nothing is left: the case that the module rules differently.
    assert answer_scores(prediction, [gold], "zh")[1] == pytest.approx(script_f1(prediction, gold))
