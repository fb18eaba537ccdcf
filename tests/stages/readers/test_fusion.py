"""Tests of the reader that fuses passages in the decoder, with tiny models."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lookup_task import COLOURS, NAMES, PROMPT, save_t5, tuned
from tiny_models import STORY, save_waves

from leporello.combiners import Truncate
from leporello.core.errors import UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Document, Example, Read
from leporello.core.training import Training, TrainingPairs
from leporello.readers import FusionInDecoder, Seq2Seq
from leporello.readers.backends import transformers_seq2seq
from leporello.readers.prompting.fusion_in_decoder import FusedChunks
from leporello.readers.training.examples import TrainingExample, translations

DOCUMENT = Document("story", " ".join([STORY] * 3))
GOLDEN = json.loads((Path(__file__).parents[2] / "golden/fusion.json").read_text())
CHUNKS: dict[str, Any] = {"on_overflow": "slice", "chunk_tokens": 32, "max_input_tokens": 100}
CHUNKS |= {"prompt": "{context}", "separator": "", "max_fused_tokens": 150}


@pytest.fixture(scope="module")
def reader(
    tiny: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., FusionInDecoder]:
    """Returns a function that returns a reader with a tiny model."""
    folders = {"llama": tiny("llama")}
    for name in ("t5", "bart"):
        folders[name] = str(tmp_path_factory.mktemp(name))
        save_waves(name, Path(folders[name]))

    def reader_with(name: str, **parameters: Any) -> FusionInDecoder:
        defaults = {"max_input_tokens": 100, "max_new_tokens": 6, "device": "cpu"}
        return FusionInDecoder(folders[name], **{**defaults, **parameters})

    return reader_with


def story(prefix: str = "") -> Read:
    return Read((*filter(None, [prefix]), DOCUMENT.chunk(0, len(DOCUMENT.text))))


@pytest.mark.parametrize("case", GOLDEN)
def test_logits_equal_those_of_the_authors_code(
    case: dict[str, Any], reader: Callable[..., FusionInDecoder]
) -> None:
    """Every 80th logit of four tokens, from SLED's and FiD's code on the same weights."""
    tiny = reader(case["model"], **case["parameters"])
    read = Read(tuple(case["passages"]), case.get("question", ""))
    if tiny.on_overflow == "slice":
        read = story("".join(case["passages"]))
    [prompt] = tiny._model_inputs(read, [read])
    with torch.inference_mode():
        states, mask = transformers_seq2seq._encoded(tiny._network, tiny.tokens, [prompt])
        outputs = transformers_seq2seq._as_output(states)
        start = 0 if case["model"] == "t5" else 1
        target = torch.tensor([[start, 20, 30, 40]])
        logits = tiny._network(
            encoder_outputs=outputs, attention_mask=mask, decoder_input_ids=target
        ).logits
    assert logits[0, :, ::80].tolist() == [pytest.approx(row, abs=5e-5) for row in case["logits"]]


@given(st.integers(1, 300), st.integers(1, 60), st.floats(0.01, 1), st.integers(0, 5))
def test_the_decoder_sees_a_token_once(count: int, chunk: int, fraction: float, head: int) -> None:
    margin = int(chunk * (1 - fraction) / 2)
    window = FusedChunks(
        lambda _: "", len, 512, "slice", encode=lambda _: (), fused=512, separator="",
        chunk=chunk, margin=margin, padded=8,
    )  # fmt: skip
    prefix, ids = tuple(range(1000, 1000 + head)), tuple(range(count))
    segments = list(window.overlapping(prefix, ids))
    visible = [segment.tokens[segment.start : segment.end] for segment in segments]
    assert tuple(chain.from_iterable(visible)) == (*prefix, *ids)
    sizes = {len(segment.tokens) for segment in segments[bool(head) :]}
    assert sizes == {min(count, chunk) + (8 if head else 0)}


def test_training_and_reading_see_the_same_states(reader: Callable[..., FusionInDecoder]) -> None:
    """The tensors of a micro-batch give the states that the reader's answers are made of."""
    tiny = reader("t5", **CHUNKS)
    prompts = [tiny.training_examples(read, "a cat")[0][0] for read in (story("Who?"), story())]
    examples = [TrainingExample(prompt, (5, 6, 1)) for prompt in prompts]
    tensors = translations(tiny._network, 0, examples)
    with torch.inference_mode():
        encoded = tiny._network.get_encoder()(
            input_ids=tensors["input_ids"], attention_mask=tensors["attention_mask"]
        ).last_hidden_state.flatten(0, 1)[tensors["places"]]
        states, mask = transformers_seq2seq._encoded(tiny._network, tiny.tokens, prompts)
    assert mask.equal(tensors["places_mask"])
    is_real = mask.bool()
    assert torch.allclose(encoded[is_real], states[is_real], atol=1e-4)


def test_passages_are_fused_up_to_the_limit(reader: Callable[..., FusionInDecoder]) -> None:
    passages = tuple(DOCUMENT.chunk(i, i + 50) for i in range(0, 200, 50))
    read = Read(passages, "Who had a cat?")
    tiny = reader("t5", max_fused_tokens=110)
    [output] = tiny.read([read])
    count = tiny.fit(read)
    assert 0 < count < 4
    assert output.read == tuple(passage.span for passage in passages[:count])
    assert output.cut == 50 * (4 - count)
    assert output.input_tokens <= 110
    assert reader("t5").fit(read) == 4
    with pytest.raises(ValueError, match=f"only {count} of the 4 passages fit in max_fused_tokens"):
        reader("t5", max_fused_tokens=110, on_overflow="error").read([read])


def test_a_passage_that_is_split_is_fused(reader: Callable[..., FusionInDecoder]) -> None:
    [output] = reader("t5", on_overflow="split").read([story()])
    assert output.cut == 0
    assert "\n" not in output.text


def test_truncate_reads_what_fits(reader: Callable[..., FusionInDecoder]) -> None:
    tiny = reader("bart", **CHUNKS)
    prompt = OfficialPrompt(before="Who?\n\n")
    example = Example("1", DOCUMENT, "Who?", metadata=prompt.metadata())
    combination: Any = Truncate().combine(example, [])
    [fit] = next(combination)
    [cut] = combination.send([tiny.fit(fit.read)])
    [read] = combination.send([tiny.sliced(cut.read, cut.behind or "")])
    [output] = tiny.read([read])
    [span] = output.read or ()
    assert (output.input_tokens, span.start) == (150, 0)
    assert span.end + output.cut == len(DOCUMENT.text)
    assert tiny.render(read).startswith("Who?\n\nThe miller")


@pytest.mark.parametrize(
    ("name", "parameters", "read", "message"),
    [
        ("t5", {"max_input_tokens": 8}, Read(("a",), "Who had the cat?"), "raise max_input_tokens"),
        ("t5", {**CHUNKS, "max_input_tokens": 40}, story(STORY), "input_tokens, or lower chunk"),
        ("t5", {**CHUNKS, "prompt": "{context} why?"}, story(), "prompt that ends with {context}"),
        ("t5", CHUNKS, Read((*story().passages, "Why?")), "max_fused_tokens would cut the text"),
        ("t5", {"max_fused_tokens": 64}, story(), "64. is below max_input_tokens .100."),
        ("t5", {"window_fraction": 0.0}, story(), "window_fraction must be above 0"),
        ("t5", {"backend": "vllm"}, story(), "backend 'vllm' does not run such models"),
        ("llama", {}, story(), r"without cross-attention.*set model to a T5 or BART"),
    ],
)  # fmt: skip
def test_parameters_models_and_inputs_that_do_not_fit_are_refused(
    name: str, parameters: Any, read: Read, message: str, reader: Callable[..., FusionInDecoder]
) -> None:
    with pytest.raises((UserError, ValueError), match=message):
        reader(name, **parameters).read([read])


def lessons(count: int, seed: int) -> TrainingPairs:
    """Returns reads of six passages, of which one has the answer."""
    chance, inputs, targets = random.Random(seed), [], []
    for _ in range(count):
        colours = [(name, chance.choice(COLOURS)) for name in chance.sample(NAMES, 6)]
        place = chance.randrange(6)
        passages = [f"the context of {name} is {colour}" for name, colour in colours]
        passages[place] = passages[place].replace("context", "ball")
        inputs.append(Read(tuple(passages), "ball"))
        targets.append(colours[place][1])
    return TrainingPairs(inputs, targets)


def test_training_makes_fusion_better_than_one_input_window(tmp_path: Path) -> None:
    """After 80 steps of the same T5: the window holds two of six passages, fusion reads all."""
    save_t5(tmp_path / "t5")
    test, correct = lessons(60, seed=2), {}
    for kind in (FusionInDecoder, Seq2Seq):
        tiny = kind(
            str(tmp_path / "t5"), prompt=PROMPT, separator=" ", max_input_tokens=24,
            on_overflow="truncate", max_new_tokens=4, device="cpu",
        )  # fmt: skip
        settings = Training(epochs=2, batch_size=16, learning_rate=0.004, seed=1)
        result = tuned(tiny, tmp_path / kind.__name__, settings, lessons=lessons(640, seed=1))
        assert result.candidates[0].step == 80
        result.candidates[0].save(tmp_path / "tuned")
        outputs = replace(tiny, model=str(tmp_path / "tuned")).read(test.inputs)
        texts = [output.text for output in outputs]
        correct[kind] = sum(map(str.__eq__, texts, test.targets))
    assert correct[FusionInDecoder] > 48
    assert correct[Seq2Seq] < 36
