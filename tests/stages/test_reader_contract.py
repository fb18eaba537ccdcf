"""Tests all readers with the kit for authors of plug-ins."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import tiny_encoders
from endpoint_server import endpoint, reply, running
from tiny_models import save_classifier, save_masked

from leporello import combiners, readers
from leporello.chunkers import Parts
from leporello.core.records import Example, Read
from leporello.testing import ReaderContract
from leporello.testing.contract import Maker
from leporello.testing.texts import DOCUMENTS, QUESTIONS, examples_on

CHOICES = ("yes", "no")
TEXTS: Mapping[str, Maker] = {
    "BestSentence": readers.BestSentence,
    "FixedAnswer": lambda: readers.FixedAnswer("no"),
    "GivenOrder": readers.GivenOrder,
    "Lead": lambda: readers.Lead(words=5),
    "MajorityAnswer": lambda: readers.MajorityAnswer(dict.fromkeys(QUESTIONS, "no")),
    "Prefix": lambda: readers.Prefix(0.3),
    "RandomSpan": lambda: readers.RandomSpan(3, ("a", "b")),
}
CHOOSING: Mapping[str, Maker] = {
    "Calibrated": lambda: readers.Calibrated(readers.Polarity(), slope=0.3),
    "MajorityOption": lambda: readers.MajorityOption(2),
    "Polarity": readers.Polarity,
    "Presence": readers.Presence,
    "RandomAnswer": readers.RandomAnswer,
}
ON_CPU: dict[str, Any] = {"max_input_tokens": 100, "device": "cpu"}
NETWORKS: Mapping[str, Callable[[Callable[[str], str]], Any]] = {
    "CausalLM": lambda at: readers.CausalLM(at("gpt2"), max_new_tokens=8, **ON_CPU),
    "Classifier": lambda at: readers.Classifier(at("classifier"), **ON_CPU),
    "CausalLM, beams": lambda at: readers.CausalLM(
        at("chat"), num_beams=3, max_new_tokens=8, **{**ON_CPU, "max_input_tokens": 160}
    ),
    "FusionInDecoder": lambda at: readers.FusionInDecoder(at("t5"), max_new_tokens=8, **ON_CPU),
    "FusionInDecoder, chunks": lambda at: readers.FusionInDecoder(
        at("bart"), max_new_tokens=8, on_overflow="slice", chunk_tokens=20, **ON_CPU
    ),
    "Seq2Seq, BART": lambda at: readers.Seq2Seq(at("bart"), max_new_tokens=8, **ON_CPU),
    "Seq2Seq, LED": lambda at: readers.Seq2Seq(at("led"), max_new_tokens=8, **ON_CPU),
    "Seq2Seq": lambda at: readers.Seq2Seq(at("t5"), max_new_tokens=8, **ON_CPU),
}
# Readers of one passage, without choices.
ONE_PASSAGE: Mapping[str, Callable[[Callable[[str], str]], Any]] = {
    "Extractive": lambda at: readers.Extractive(at("bert"), stride=20, **ON_CPU),
    "LogLikelihood": lambda at: readers.LogLikelihood(at("gpt2"), **ON_CPU),
    "PseudoLogLikelihood": lambda at: readers.PseudoLogLikelihood(at("masked"), **ON_CPU),
}
PAIRS = ("PairClassifier", "Precedence")


def test_every_reader_is_tested() -> None:
    """A new reader needs an entry in a table; readers with a network depend on their batches."""
    networks = {name.partition(",")[0] for name in (*NETWORKS, *ONE_PASSAGE)}
    others = {*TEXTS, *CHOOSING, *PAIRS, "Embedded", "Endpoint"}
    assert networks | others == {*readers.__all__}
    for name in {*networks, "Embedded"} - {"Classifier"}:
        assert getattr(getattr(readers, name), "depends_on_batch", True) is True
    assert readers.Calibrated(readers.Seq2Seq("no-model")).depends_on_batch is True


class TestReaders(ReaderContract):
    """Readers without a model, on questions with and without choices."""

    huge = 200_000

    @pytest.fixture(params=TEXTS)
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        return TEXTS[request.param]


class TestChoosing(ReaderContract):
    """Readers that need choices."""

    examples = tuple(replace(e, choices=CHOICES) for e in examples_on(DOCUMENTS, QUESTIONS))
    huge = 200_000

    @pytest.fixture(params=CHOOSING)
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        return CHOOSING[request.param]

    def inputs_of(self, examples: Sequence[Example]) -> list[Read]:
        return [replace(read, choices=CHOICES) for read in super().inputs_of(examples)]


@pytest.fixture(scope="session")
def models(
    tiny: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """Returns a function that returns the path of a tiny model, and creates it when needed."""
    base = tmp_path_factory.mktemp("models")

    def at(name: str) -> str:
        place = base / name
        if place.exists():
            return str(place / "model" if (place / "model").exists() else place)
        if name == "classifier":
            save_classifier("bert", place, CHOICES)
        elif name == "bert":
            tiny_encoders.save(name, place)
        elif name == "masked":
            save_masked("roberta", place)
        elif name == "pairs":
            texts = [f"{word} {word}, said {n}. " * 3 for n in range(4) for word in ("cat", "mill")]
            pairs = [Read((), pair=(a, b)) for a in texts for b in texts if a < b]
            readers.PairClassifier().learn(pairs, ["same", "different"] * 14, place)
        else:
            return tiny(name)
        return at(name)

    return at


class TestNetworks(ReaderContract):
    """Readers with tiny models."""

    documents = DOCUMENTS[1:]
    tolerance = 1e-4
    threads = 1
    huge = 2_000

    @pytest.fixture(params=NETWORKS)
    def maker(self, request: pytest.FixtureRequest, models: Callable[[str], str]) -> Maker:
        return lambda: NETWORKS[request.param](models)


class TestEmbedded(ReaderContract):
    """Reader with the encoder of the package."""

    make = readers.Embedded
    examples = tuple(examples_on(DOCUMENTS[1:], QUESTIONS))[:2]
    tolerance = 1e-4
    huge = 1_000


class TestOnePassage(ReaderContract):
    """Readers with tiny models that read one passage at a time, without choices."""

    examples = tuple(replace(e, choices=()) for e in examples_on(DOCUMENTS[1:], QUESTIONS))
    tolerance = 1e-4
    threads = 1
    huge = 2_000
    around: ClassVar[Mapping[str, Any]] = {"combiner": combiners.Mean()}

    @pytest.fixture(params=ONE_PASSAGE)
    def maker(self, request: pytest.FixtureRequest, models: Callable[[str], str]) -> Maker:
        return lambda: ONE_PASSAGE[request.param](models)

    def inputs_of(self, examples: Sequence[Example]) -> list[Read]:
        texts = [(e.document, min(99, len(e.document.text))) for e in examples]
        return [Read((document.chunk(0, end),), "Who?") for document, end in texts]


class TestPairs(ReaderContract):
    """Readers that compare two texts."""

    tolerance = 1e-4
    documents = DOCUMENTS[:2]
    huge = 100_000
    around: ClassVar[Mapping[str, Any]] = {
        "chunker": Parts(), "combiner": combiners.AssignAuthors()
    }  # fmt: skip

    @pytest.fixture(params=PAIRS)
    def maker(self, request: pytest.FixtureRequest, models: Callable[[str], str]) -> Maker:
        if request.param == "Precedence":
            return readers.Precedence
        return lambda: readers.PairClassifier(models("pairs"))

    def inputs_of(self, examples: Sequence[Example]) -> list[Read]:
        return [Read((), pair=(e.document.text, e.question)) for e in examples]


class TestEndpoint(ReaderContract):
    """Reader that calls a server, which answers with the beginning of the prompt."""

    huge = 50_000

    @pytest.fixture
    def maker(self) -> Iterator[Maker]:
        with running(lambda request: reply(request, request.prompt[:40])) as server:
            yield lambda: endpoint(server)

    def case(self, text: str, question: str = "") -> Any:
        """Returns one input, whose text is never empty."""
        return super().case(f"{text}.", question)
