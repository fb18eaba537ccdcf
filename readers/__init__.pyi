__all__: list[str]

from .best_sentence import BestSentence as BestSentence
from .calibrated import Calibrated as Calibrated
from .classifier import Classifier as Classifier
from .embedded_reader import Embedded as Embedded
from .endpoint import Endpoint as Endpoint
from .extractive import Extractive as Extractive
from .language_models import CausalLM as CausalLM
from .language_models import Seq2Seq as Seq2Seq
from .log_likelihood import LogLikelihood as LogLikelihood
from .log_likelihood import PseudoLogLikelihood as PseudoLogLikelihood
from .naive import FixedAnswer as FixedAnswer
from .naive import GivenOrder as GivenOrder
from .naive import Lead as Lead
from .naive import MajorityAnswer as MajorityAnswer
from .naive import MajorityOption as MajorityOption
from .naive import Prefix as Prefix
from .naive import RandomAnswer as RandomAnswer
from .naive import RandomSpan as RandomSpan
from .pair_classifier import PairClassifier as PairClassifier
from .prompting.fusion_in_decoder import FusionInDecoder as FusionInDecoder
from .word_evidence import Polarity as Polarity
from .word_evidence import Precedence as Precedence
from .word_evidence import Presence as Presence
