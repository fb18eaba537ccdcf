"""Location of models, and conversion of a tiny GGUF file that the tests write."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from command_line import write_files
from storage_servers import Web, serving
from tiny_models import SPECIAL, STORY, network, tokenizer
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, PretrainedConfig, PreTrainedModel

from leporello.core.errors import UserError
from leporello.core.files import cache_directory
from leporello.models.locate import EMBEDDED, loadable, locate, model_fingerprint

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write_gguf(path: Path, model: PreTrainedModel, core: Tokenizer) -> None:
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(core.get_vocab_size())
    tokens = sorted(core.get_vocab(), key=core.get_vocab().__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    writer.add_token_merges(
        [" ".join(pair) for pair in json.loads(core.to_str())["model"]["merges"]]
    )
    writer.add_pad_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(1)
    for name, tensor in model.state_dict().items():
        writer.add_tensor(gguf_name(name), gguf_layout(name, tensor.numpy(), config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_name(name: str) -> str:
    plain = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in plain:
        return plain[name]
    _, _, layer, *parts = name.removesuffix(".weight").split(".")
    return f"blk.{layer}.{NAMES['.'.join(parts)]}.weight"


def gguf_layout(name: str, tensor: np.ndarray, config: PretrainedConfig) -> np.ndarray:
    """Returns the tensor with the rows of queries and keys in llama.cpp's rotary order."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    if not (number := heads.get(name.split(".")[-2])):
        return tensor
    rows, columns = tensor.shape
    halves = tensor.reshape(number, 2, rows // number // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreTrainedModel, Tokenizer]:
    """A tiny GGUF file, and the model and tokenizer that it was written from."""
    core = tokenizer("$A", chat=False).backend_tokenizer
    torch.manual_seed(0)
    model = network("llama", core.get_vocab_size())
    path = tmp_path_factory.mktemp("gguf") / "tiny.F32.gguf"
    write_gguf(path, model, core)
    return path, model, core


def test_conversion(
    tiny: tuple[Path, PreTrainedModel, Tokenizer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A converted model gives the logits of the original, and later calls reuse its files."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path))
    path, model, core = tiny
    leftover = tmp_path / "models" / f".tiny.F32-{model_fingerprint(str(path))[7:23]}.partial"
    leftover.mkdir(parents=True)
    (leftover / "config.json").write_text("torn")
    folder = Path(loadable(str(path)))
    assert capfd.readouterr() == ("", "")
    assert not leftover.exists()
    ids = torch.tensor([core.encode(STORY).ids])
    assert AutoTokenizer.from_pretrained(folder)(STORY)["input_ids"] == ids[0].tolist()
    converted = AutoModelForCausalLM.from_pretrained(folder)
    with torch.inference_mode():
        torch.testing.assert_close(converted(ids).logits, model(ids).logits, atol=1e-4, rtol=0)
    stamps = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert loadable(str(path)) == str(folder)
    assert stamps == {file: file.stat().st_mtime_ns for file in folder.iterdir()}


def test_two_calls_at_once_convert_it_once(
    tiny: tuple[Path, PreTrainedModel, Tokenizer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A lock on a file separates threads as it separates processes."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path))
    caplog.set_level("INFO", logger="leporello")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(loadable, [str(tiny[0])] * 2)
    assert first == second
    assert Path(first).is_dir()
    assert caplog.text.count("converting tiny.F32.gguf") == 1


def test_failed_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not GGUF raises a UserError, and leaves no folder."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "not.gguf"
    path.write_bytes(b"GGML, once")
    with pytest.raises(UserError, match="could not be converted from GGUF"):
        loadable(str(path))
    assert not [path for path in (tmp_path / "cache" / "models").iterdir() if path.is_dir()]


def test_locate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths must exist, hub ids are returned unchanged, and models in wheels are located."""
    assert locate("google-t5/t5-base") == loadable("google-t5/t5-base") == "google-t5/t5-base"
    assert locate(str(tmp_path)) == str(tmp_path.resolve())
    for missing in ("./nowhere", str(tmp_path / "nowhere"), "missing.gguf"):
        with pytest.raises(UserError, match="there is no such file or folder"):
            locate(missing)
    assert all(Path(locate(name)).exists() for name in EMBEDDED)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match="install it with: pip install"):
        locate("smollm2-135m-instruct")


def test_fingerprint(tmp_path: Path) -> None:
    """A model's fingerprint depends on the content of its files, not on their path or time."""
    write_files(tmp_path, {"one/config.json": "{}", "other/config.json": "{}"})
    before = model_fingerprint(str(tmp_path / "one"))
    assert before == model_fingerprint(str(tmp_path / "other"))
    write_files(tmp_path, {"one/config.json": "{ }"})
    assert model_fingerprint(str(tmp_path / "one")) != before


def test_fingerprint_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is not local has the hub's revision; one that the hub lacks raises an error."""
    revision = "f" * 40
    answer = {"id": "nobody/tiny", "sha": revision, "tags": [], "siblings": [], "private": False}
    with serving(Web({"/api/models/nobody/tiny": json.dumps(answer).encode()})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert model_fingerprint("nobody/tiny") == f"hub:nobody/tiny@{revision}"
        with pytest.raises(UserError, match="was not found locally or on the hub"):
            model_fingerprint("nobody/none")
    with pytest.raises(UserError, match="check the name and the network"):
        model_fingerprint("nobody/tiny")


def test_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without LEPORELLO_CACHE, which the tests set, the user's cache folder is used."""
    monkeypatch.delenv("LEPORELLO_CACHE")
    assert cache_directory().name == "leporello"
