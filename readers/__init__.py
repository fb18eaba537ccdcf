"""Readers: reader inputs -> outputs. Each class here can be named in `pipelines.yaml`."""

from __future__ import annotations

from readers.best_sentence import BestSentence
from readers.calibrated import Calibrated
from readers.causal_lm import CausalLM
from readers.classifier import Classifier
from readers.endpoint import Endpoint
from readers.extractive import Extractive
from readers.late_interaction_classifier import LateInteractionClassifier
from readers.lead import Lead
from readers.log_likelihood import LogLikelihood
from readers.naive import (
    FixedAnswer,
    GivenOrder,
    MajorityAnswer,
    MajorityOption,
    Prefix,
    RandomAnswer,
    RandomSpan,
)
from readers.pair_classifier import PairClassifier
from readers.pseudo_log_likelihood import PseudoLogLikelihood
from readers.seq2seq import Seq2Seq

__all__ = [
    "BestSentence",
    "Calibrated",
    "CausalLM",
    "Classifier",
    "Endpoint",
    "Extractive",
    "FixedAnswer",
    "GivenOrder",
    "LateInteractionClassifier",
    "Lead",
    "LogLikelihood",
    "MajorityAnswer",
    "MajorityOption",
    "PairClassifier",
    "Prefix",
    "PseudoLogLikelihood",
    "RandomAnswer",
    "RandomSpan",
    "Seq2Seq",
]
