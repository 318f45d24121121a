"""The stage audit_leaks: exact and near duplicates, contradictions, leaked marks, policies."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.datasets.config import AuditConfig, DatasetConfig
from components.datasets.shingles import candidates, choose_bands, jaccard, shingle_hashes
from components.datasets.stage import audit_leaks, prepare_dataset
from components.errors import ArtifactError, InputError
from components.examples import SPLITS, Example, read_examples, read_labels, write_examples, write_labels
from components.formats import read_json, read_jsonl

LONG = "这家酒店的房间非常干净,服务员的态度也很好,早餐的种类丰富,离地铁站只有五分钟,下次来还会选择这里"
CHN = Path(__file__).parents[4] / "shared" / "data" / "sentiment-zh-chnsenticorp"


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "dataset"
    folder.mkdir()

    def write(**splits):
        for split in SPLITS:
            rows = [Example(f"{split}:{n}", text, label) for n, (text, label) in enumerate(splits[split], 1)]
            write_examples(folder, split, rows)
        write_labels(folder, ["neg", "pos"])
        return folder

    return write


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def standard(dataset):
    return dataset(
        train=[
            ("好书", "pos"),
            ("非常差劲的一本书", "neg"),
            (LONG, "pos"),
            ("完全不同的内容在这里", "neg"),
            ("验证集里也有这句话", "pos"),
            ("好书", "pos"),
            ("矛盾的标签", "pos"),
            ("矛盾的标签", "neg"),
        ],
        validation=[("好 书", "pos"), ("验证集里也有这句话", "pos"), ("只在验证集出现过的", "neg")],
        test=[
            ("好书", "neg"),
            (LONG.replace("五", "六"), "pos"),
            ("独一无二的测试句子", "neg"),
            ("独一无二的测试句子", "neg"),
        ],
    )


def test_what_duplicates_a_test_text_leaves_train_and_validation(dataset, out):
    metrics = audit_leaks(AuditConfig(), dataset=standard(dataset), out_dir=out)
    assert [row.id for row in read_examples(out, "train")] == ["train:2", "train:4", "train:7", "train:8"]
    assert [row.id for row in read_examples(out, "validation")] == ["validation:2", "validation:3"]
    assert [row.leaked for row in read_examples(out, "test")] == [True, True, False, False]
    assert not any(row.leaked for row in read_examples(out, "train"))
    assert list(read_jsonl(out / "dropped.jsonl")) == [
        {"id": "train:1", "split": "train", "reason": "duplicate_of_test", "other": "test:1"},
        {"id": "train:3", "split": "train", "reason": "duplicate_of_test", "other": "test:2"},
        {"id": "train:5", "split": "train", "reason": "duplicate_of_validation", "other": "validation:2"},
        {"id": "train:6", "split": "train", "reason": "duplicate_of_test", "other": "test:1"},
        {"id": "validation:1", "split": "validation", "reason": "duplicate_of_test", "other": "test:1"},
    ]
    assert read_labels(out) == ["neg", "pos"]
    expected = {
        "num_train_in": 8,
        "num_train": 4,
        "num_train_removed_duplicate_of_test": 3,
        "num_train_removed_duplicate_of_validation": 1,
        "num_validation_removed_duplicate_of_test": 1,
        "num_test_leaked": 2,
        "share_test_leaked": 0.5,
        "num_test_exact_in_train": 1,
        "num_test_near_in_train": 1,
        "num_test_exact_in_validation": 1,
        "num_test_exact_inside": 1,
        "num_validation_exact_in_train": 2,
        "num_train_exact_inside": 2,
        "num_texts_contradictory": 2,
        "num_rows_contradictory": 6,
    }
    assert {name: metrics[name] for name in expected} == expected


def test_every_row_is_kept_or_named(dataset, out):
    metrics = audit_leaks(AuditConfig(duplicates_in_train="remove"), dataset=standard(dataset), out_dir=out)
    for split in SPLITS:
        removed = sum(value for name, value in metrics.items() if name.startswith(f"num_{split}_removed_"))
        assert metrics[f"num_{split}_in"] == metrics[f"num_{split}"] + removed
    counts = read_json(out / "audit.json")["counts"]
    assert {name: metrics[name] for name in counts} == counts


def test_policies_keep(dataset, out):
    config = AuditConfig(duplicates_of_test="keep", duplicates_of_validation="keep")
    metrics = audit_leaks(config, dataset=standard(dataset), out_dir=out)
    assert metrics["num_train"] == 8
    assert metrics["num_test_leaked"] == 2  # the mark does not depend on what is removed


def test_policies_for_train_alone(dataset, out):
    config = AuditConfig(
        duplicates_of_test="keep",
        duplicates_of_validation="keep",
        duplicates_in_train="remove",
        contradictions_in_train="remove",
    )
    metrics = audit_leaks(config, dataset=standard(dataset), out_dir=out)
    assert [row.id for row in read_examples(out, "train")] == ["train:1", "train:2", "train:3", "train:4", "train:5"]
    assert metrics["num_train_removed_duplicate"] == 1
    assert metrics["num_train_removed_contradictory_label"] == 2


def test_report_shows_pairs_with_ids_labels_and_similarity(dataset, out):
    audit_leaks(AuditConfig(), dataset=standard(dataset), out_dir=out)
    pairs = read_json(out / "audit.json")["pairs"]
    exact = pairs[0]
    assert (exact["kind"], exact["similarity"], exact["contradictory"]) == ("exact", 1.0, True)
    assert (exact["left"]["id"], exact["right"]["id"]) == ("test:1", "train:1")
    near = next(pair for pair in pairs if pair["kind"] == "near")
    assert (near["left"]["id"], near["right"]["id"]) == ("test:2", "train:3")
    # One of the 45 characters without punctuation differs: 3 of 43 trigrams on either side, 40 shared of 46.
    assert near["similarity"] == round(40 / 46, 4)
    assert near["left"]["excerpt"].startswith("这家酒店")


def test_number_of_pairs_is_limited(dataset, out):
    rows = [(f"第{n}条完全一样的评论", "pos" if n % 2 else "neg") for n in range(30)]
    folder = dataset(train=[*rows, ("甲乙丙", "pos"), ("丁戊己", "neg")], validation=[("其他", "pos")], test=rows)
    audit_leaks(AuditConfig(num_pairs=4, threshold=1.0), dataset=folder, out_dir=out)
    assert len(read_json(out / "audit.json")["pairs"]) == 4


def test_near_duplicates_can_be_switched_off(dataset, out):
    metrics = audit_leaks(AuditConfig(near_duplicates=False), dataset=standard(dataset), out_dir=out)
    assert metrics["num_test_near_in_train"] == 0
    assert [row.leaked for row in read_examples(out, "test")] == [True, False, False, False]


def test_threshold_decides(dataset, out):
    metrics = audit_leaks(AuditConfig(threshold=0.9), dataset=standard(dataset), out_dir=out)
    assert metrics["num_test_near_in_train"] == 0


def test_english_words(dataset, out):
    words = [
        "the",
        "room",
        "was",
        "clean",
        "and",
        "the",
        "staff",
        "were",
        "friendly",
        "so",
        "we",
        "will",
        "certainly",
        "come",
        "back",
        "here",
        "next",
        "year",
    ]
    folder = dataset(
        train=[(" ".join(words), "pos"), ("nothing like it", "neg"), ("fine", "pos")],
        validation=[("bad", "neg")],
        test=[(" ".join([*words[:-1], "month!"]).title(), "pos"), ("a wholly different sentence", "neg")],
    )
    metrics = audit_leaks(AuditConfig(shingle_unit="words"), dataset=folder, out_dir=out)
    assert metrics["num_test_near_in_train"] == 1
    # 18 words, 16 trigrams, the last one differs: 15 shared of 17.
    assert read_json(out / "audit.json")["pairs"][0]["similarity"] == round(15 / 17, 4)


def test_a_large_cluster_of_copies_costs_no_square(dataset, out):
    rows = [(LONG + str(n), "pos" if n % 2 else "neg") for n in range(1200)]
    folder = dataset(train=[*rows, ("甲乙丙", "pos"), ("丁戊己", "neg")], validation=[("其他", "pos")], test=rows[:500])
    metrics = audit_leaks(AuditConfig(duplicates_of_test="keep"), dataset=folder, out_dir=out)
    assert metrics["num_train_near_inside"] == 1200
    assert metrics["num_test_leaked"] == 500


def test_data_that_is_all_duplicates_is_refused(dataset, out):
    rows = [("好书", "pos"), ("坏书", "neg")]
    with pytest.raises(InputError, match="all 2 train rows duplicate"):
        audit_leaks(AuditConfig(), dataset=dataset(train=rows, validation=[("嗯", "pos")], test=rows), out_dir=out)
    folder = dataset(train=[*rows, ("很好", "pos")], validation=[("嗯", "pos")], test=rows)
    with pytest.raises(InputError, match="no training row for label\\(s\\) 'neg'"):
        audit_leaks(AuditConfig(), dataset=folder, out_dir=out)
    assert list(out.iterdir()) == []


def test_folder_that_is_no_dataset(tmp_path, out):
    with pytest.raises(ArtifactError, match="no data set artifact"):
        audit_leaks(AuditConfig(), dataset=tmp_path, out_dir=out)


def test_same_input_same_bytes(dataset, tmp_path):
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        audit_leaks(AuditConfig(), dataset=standard(dataset), out_dir=tmp_path / name)
        contents.append({path.name: path.read_bytes() for path in sorted((tmp_path / name).iterdir())})
    assert contents[0] == contents[1]


def test_progress_goes_up_to_one(dataset, out):
    shares = []
    audit_leaks(
        AuditConfig(),
        dataset=standard(dataset),
        out_dir=out,
        log_metrics=lambda metrics, step=None: shares.append(metrics.get("progress")),
    )
    shares = [share for share in shares if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


# --- shingles --------------------------------------------------------------------------------------------------------


def test_shingles_ignore_case_space_and_punctuation():
    same = shingle_hashes("Good book", "characters", 3)
    for text in ("good book!!", "GOOD, BOOK", " g o o d b o o k"):
        assert np.array_equal(shingle_hashes(text, "characters", 3), same)
    assert len(same) == 6
    assert not np.array_equal(shingle_hashes("!!!", "characters", 3), shingle_hashes("???", "characters", 3))


def test_short_texts_are_one_shingle_of_their_own():
    assert len(shingle_hashes("好", "characters", 3)) == len(shingle_hashes("好书", "characters", 3)) == 1
    assert jaccard(shingle_hashes("好", "characters", 3), shingle_hashes("好书", "characters", 3)) == 0.0
    assert len(shingle_hashes("one two", "words", 3)) == 1
    assert len(shingle_hashes("😀", "words", 3)) == 1


@settings(max_examples=60, deadline=None)
@given(left=st.text("甲乙丙丁", min_size=1, max_size=12), right=st.text("甲乙丙丁", min_size=1, max_size=12))
def test_jaccard_equals_the_one_of_python_sets(left, right):
    def grams(text):
        return {text[start : start + 2] for start in range(max(1, len(text) - 1))}

    expected = len(grams(left) & grams(right)) / len(grams(left) | grams(right))
    found = jaccard(shingle_hashes(left, "characters", 2), shingle_hashes(right, "characters", 2))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9, 1.0])
def test_bands_reach_the_recall_at_the_threshold(threshold):
    bands, rows = choose_bands(threshold, 128)
    assert bands * rows <= 128
    assert 1 - (1 - threshold**rows) ** bands >= 0.99


def test_candidates_contain_the_near_pair_and_few_others():
    generator = np.random.default_rng(0)
    sets = [np.unique(generator.integers(0, 2**60, 60).astype(np.uint64)) for _ in range(300)]
    sets.append(np.unique(np.concatenate([sets[7][:55], sets[8][:5]])))
    found = {(left, right) for left, others in candidates(sets, threshold=0.8, num_perm=128) for right in others}
    assert (7, 300) in found
    assert (300, 7) in found
    assert len(found) < 10


# --- real data -------------------------------------------------------------------------------------------------------


@pytest.mark.shared_data
@pytest.mark.skipif(not CHN.is_dir(), reason="ChnSentiCorp is not beside the checkout")
def test_chnsenticorp_is_found_leaking(tmp_path, out):
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    config = DatasetConfig(
        source="files",
        train=str(CHN / "train.tsv"),
        validation=str(CHN / "dev.tsv"),
        test=str(CHN / "test.tsv"),
        text_column="text_a",
    )
    prepare_dataset(config, out_dir=prepared)
    started = time.process_time()
    metrics = audit_leaks(AuditConfig(), dataset=prepared, out_dir=out)
    assert time.process_time() - started < 60
    named = {
        int(line.split("\t")[1])
        for line in (CHN / "leaked_line_numbers.tsv").read_text("utf-8").split("\n")
        if line.startswith("test")
    }
    leaked = {int(row.id.split(":")[1]) for row in read_examples(out, "test") if row.leaked}
    assert 0.28 <= metrics["num_test_leaked_exact"] / 1200 <= 0.31
    assert 0.28 <= metrics["share_test_leaked"] <= 0.33
    assert named <= leaked
