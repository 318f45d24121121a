"""Next-word language models over a recurrent encoder.

Legend of shape suffixes: B batch, L length, T predicted words, E embedding_size, V vocab_size, K noise words.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from components.encoders.recurrent import RecurrentEncoder
from components.text.vocabulary import PAD_ID


class LanguageModel(nn.Module):
    """Predicts each word from those before it and, with a second direction, from those after it.

    The two directions share word embeddings and output weights and nothing else (Peters et al. 2018, section 3.1).
    """

    def __init__(self, encoder: RecurrentEncoder, *, tie_weights: bool) -> None:
        super().__init__()
        hidden_size, embedding_size = encoder.settings.hidden_size, encoder.settings.embedding_size
        self.encoder = encoder
        self.projections = nn.ModuleList(nn.Linear(hidden_size, embedding_size) for _ in encoder.stacks)
        self.output_bias_V = nn.Parameter(torch.zeros(len(encoder.vocabulary)))
        with torch.no_grad():
            # Padding is no word: probability and gradient are exactly zero from the start.
            self.output_bias_V[PAD_ID] = -1e4
        self.own_output_VE = None if tie_weights else nn.Parameter(encoder.embedding.weight.detach().clone())

    @property
    def output_VE(self) -> Tensor:
        """Output weights: the word embeddings when tied."""
        return self.encoder.embedding.weight if self.own_output_VE is None else self.own_output_VE

    def forward(self, input_ids_BL: Tensor, num_sampled: int = 0) -> Tensor:
        """Mean cross-entropy per predicted word in nats, averaged over the directions.

        Args:
            input_ids_BL: Windows without padding, L >= 2.
            num_sampled: Noise words of the sampled softmax; 0 for the full softmax.
        """
        lengths_B = torch.full((len(input_ids_BL),), input_ids_BL.shape[1])
        hidden = self.encoder(input_ids_BL, lengths_B).hidden_BLH.chunk(len(self.projections), dim=-1)
        losses = []
        for backward, (states_BLH, projection) in enumerate(zip(hidden, self.projections, strict=True)):
            # The state at a word has seen that word: forward it predicts the next one, backward the one before.
            context = states_BLH[:, 1:] if backward else states_BLH[:, :-1]
            targets_T = (input_ids_BL[:, :-1] if backward else input_ids_BL[:, 1:]).flatten()
            context_TE = projection(context.flatten(0, 1))
            losses.append(self._loss(context_TE, targets_T, num_sampled))
        return torch.stack(losses).mean()

    def _loss(self, context_TE: Tensor, targets_T: Tensor, num_sampled: int) -> Tensor:
        if num_sampled:
            return sampled_softmax_loss(context_TE, targets_T, self.output_VE, self.output_bias_V, num_sampled)
        return functional.cross_entropy(context_TE @ self.output_VE.T + self.output_bias_V, targets_T)


def zipf_log_probabilities(vocab_size: int, device: torch.device | None = None) -> Tensor:
    """Log probability of each id as a noise word: log-uniform over frequency ranks, never padding (id 0); shape [V]."""
    ranks_V = torch.arange(vocab_size, device=device, dtype=torch.float64)
    probabilities_V = torch.log1p(1 / ranks_V) / math.log(vocab_size)
    probabilities_V[0] = 0
    return probabilities_V.log().float()


def sampled_softmax_loss(
    context_TE: Tensor, targets_T: Tensor, output_VE: Tensor, bias_V: Tensor, num_sampled: int
) -> Tensor:
    """Cross-entropy whose sum over the vocabulary is estimated from K shared noise words (Jean et al. 2015, section 3).

    Each noise word stands for itself divided by its expected count among the noise, which makes the sum unbiased; the
    true word is counted once, exactly, and left out of the noise. Noise words come from torch's global CPU generator.
    Ids must be sorted by falling frequency.

    Args:
        context_TE: Predicted output embeddings.
        targets_T: True word ids, none of them padding.
        output_VE: Output weights.
        bias_V: Output biases.
        num_sampled: K, drawn with replacement.
    """
    vocab_size = len(output_VE)
    uniform_K = torch.rand(num_sampled, dtype=torch.float64)
    noise_K = torch.exp(uniform_K * math.log(vocab_size)).long().clamp(1, vocab_size - 1).to(targets_T.device)
    correction_V = zipf_log_probabilities(vocab_size, targets_T.device) + math.log(num_sampled)
    true_T = (context_TE * output_VE[targets_T]).sum(-1) + bias_V[targets_T]
    noise_TK = torch.addmm((bias_V - correction_V)[noise_K], context_TE, output_VE[noise_K].T)
    noise_TK = noise_TK.masked_fill(noise_K == targets_T[:, None], -torch.inf)
    logits = torch.cat([true_T[:, None], noise_TK], dim=1)
    return functional.cross_entropy(logits, torch.zeros_like(targets_T))
