"""A small corpus with a tokenizer and its segmentation, made once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from components.formats import Document, SegmentedDocument, ShardWriter
from components.tokenizer.config import TokenizerConfig
from components.tokenizer.stage import train_tokenizer

WORDS = ["春天", "来", "了", "花开", "很", "好看", "北京", "天气", "今天", "nlp2000", "我们", "喜欢", "学习", "语言"]


def make_documents(num_documents, seed):
    generator = np.random.default_rng(seed)
    for number in range(num_documents):
        topic = generator.choice(WORDS, size=5, replace=False)
        sentences = []
        for _ in range(int(generator.integers(3, 8))):
            words = [str(word) for word in generator.choice(topic, size=int(generator.integers(3, 12)))]
            sentences.append((*words, "。"))
        yield f"text.txt:{seed * 1000 + number + 1}", tuple(sentences)


def write_corpus(folder, segmented, **num_documents):
    for path in (folder, segmented):
        path.mkdir(parents=True)
    for seed, (split, count) in enumerate(num_documents.items()):
        plain, words = ShardWriter(folder, split, 40), ShardWriter(segmented, split, 40)
        for name, sentences in make_documents(count, seed):
            # White space between words, as in text with Latin words, must not disturb the alignment.
            plain.write(
                Document(name, tuple(" ".join(words) if len(words) % 2 else "".join(words) for words in sentences))
            )
            words.write(SegmentedDocument(name, sentences))
        plain.close()
        words.close()


@pytest.fixture(scope="session")
def bert_inputs(tmp_path_factory):
    root = tmp_path_factory.mktemp("bert_inputs")
    write_corpus(root / "corpus", root / "segmented", train=120, validation=30)
    (root / "tokenizer").mkdir()
    train_tokenizer(TokenizerConfig(min_vocab_size=10), corpus=root / "corpus", out_dir=root / "tokenizer")
    return SimpleNamespace(corpus=root / "corpus", segmented=root / "segmented", tokenizer=root / "tokenizer")


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
