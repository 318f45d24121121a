"""The document reader of DrQA (Chen et al. 2017, section 3.2), over any encoder's token vectors.

Legend of shape suffixes: B windows, N pieces of the passage, M pieces of the question, H the encoder's states, F
features of a piece, S states of the context layer.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

WIDTHS = (3, 9, 21)
"""Pieces around a piece over which matches with the question are counted."""
NUM_MATCH_FEATURES = 2 * (1 + len(WIDTHS))


class AttentiveHead(nn.Module):
    """Question-aware features of every passage piece, a context layer, and two pointers."""

    def __init__(self, hidden_size: int, make_context: Callable[[int], tuple[nn.Module, int]], dropout: float) -> None:
        """Initialise weights from torch's global generator.

        Args:
            hidden_size: H.
            make_context: F to the context layer and S.
            dropout: On states and features.
        """
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.align = nn.Linear(hidden_size, hidden_size)
        self.context, state_size = make_context(3 * hidden_size + NUM_MATCH_FEATURES)
        self.question_weight = nn.Linear(hidden_size, 1)
        self.bilinear = nn.ModuleList(nn.Linear(hidden_size, state_size) for _ in range(2))
        self.direct = nn.Linear(state_size, 2)
        self.null = nn.Linear(hidden_size + state_size, 2)

    def forward(
        self,
        question_BMH: Tensor,
        passage_BNH: Tensor,
        question_ids_BM: Tensor,
        passage_ids_BN: Tensor,
        question_mask_BM: Tensor,
        passage_mask_BN: Tensor,
    ) -> Tensor:
        """Scores of "no answer here" and of every passage piece as start and end, shape [B, 1 + N, 2]."""
        question_BMH, passage_BNH = self.dropout(question_BMH), self.dropout(passage_BNH)
        aligned_BNH = self._aligned(question_BMH, passage_BNH, question_mask_BM)
        matches_BNX = match_features(passage_ids_BN, question_ids_BM, passage_mask_BN, question_mask_BM)
        features_BNF = torch.cat([passage_BNH, aligned_BNH, passage_BNH * aligned_BNH, matches_BNX], dim=-1)
        states_BNS = self.dropout(self.context(features_BNF, passage_mask_BN))
        weights_BM = self.question_weight(question_BMH)[..., 0].masked_fill(~question_mask_BM, float("-inf"))
        asked_BH = (weights_BM.softmax(dim=-1)[..., None] * question_BMH).sum(dim=1)
        pointers = [(states_BNS * layer(asked_BH)[:, None]).sum(dim=-1) for layer in self.bilinear]
        scores_BN2 = torch.stack(pointers, dim=-1) + self.direct(states_BNS)
        strongest_BS = states_BNS.masked_fill(~passage_mask_BN[..., None], float("-inf")).amax(dim=1)
        null_B2 = self.null(torch.cat([asked_BH, strongest_BS], dim=-1))
        return torch.cat([null_B2[:, None], scores_BN2], dim=1)

    def _aligned(self, question_BMH: Tensor, passage_BNH: Tensor, question_mask_BM: Tensor) -> Tensor:
        """The question as each passage piece sees it: its pieces, weighted by how similar they are."""
        asked, told = torch.relu(self.align(question_BMH)), torch.relu(self.align(passage_BNH))
        similarity_BNM = (told @ asked.transpose(1, 2)) / asked.shape[-1] ** 0.5
        similarity_BNM = similarity_BNM.masked_fill(~question_mask_BM[:, None], float("-inf"))
        aligned_BNH: Tensor = similarity_BNM.softmax(dim=-1) @ question_BMH
        return aligned_BNH


def match_features(
    passage_ids_BN: Tensor, question_ids_BM: Tensor, passage_mask_BN: Tensor, question_mask_BM: Tensor
) -> Tensor:
    """Whether a piece, and whether it with a neighbour, occurs in the question, and how often around it.

    Pairs of neighbours make up for what a single Chinese character does not say.

    Returns:
        Shape [B, N, NUM_MATCH_FEATURES], float.
    """
    same_BNM = passage_ids_BN[:, :, None] == question_ids_BM[:, None, :]
    same_BNM = same_BNM & passage_mask_BN[:, :, None] & question_mask_BM[:, None, :]
    single_BN = same_BNM.any(dim=-1)
    pair_BN = torch.zeros_like(single_BN)
    if same_BNM.shape[1] > 1 and same_BNM.shape[2] > 1:
        starts = (same_BNM[:, :-1, :-1] & same_BNM[:, 1:, 1:]).any(dim=-1)
        pair_BN = nn.functional.pad(starts, (0, 1)) | nn.functional.pad(starts, (1, 0))
    exact_B2N = torch.stack([single_BN, pair_BN], dim=1).float()
    around = [nn.functional.avg_pool1d(exact_B2N, width, stride=1, padding=width // 2) for width in WIDTHS]
    return torch.cat([exact_B2N, *around], dim=1).transpose(1, 2)
