"""A model: its shape, the sublayers of each layer, and the exact count of its parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, get_args

from clustersim.workload import model_matrices
from clustersim.workload import model_parameters as count
from clustersim.workload.layer_run import LayerRun
from clustersim.workload.model_check import check_model
from clustersim.workload.shape.encoder import Encoder
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shape.latent_attention import LatentAttention
from clustersim.workload.shape.linear_attention import LinearAttention
from clustersim.workload.shape.lora import LoRA
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.shape.patches import Patches
from clustersim.workload.shape.sliding_window import SlidingWindow
from clustersim.workload.shape.tower import Tower
from clustersim.workload.sublayer import LAYOUT, Sublayer, matrices, parameters

__all__ = ["Model", "Norm", "Positions"]

Norm = Literal["layernorm", "rmsnorm"]
Positions = Literal["rope", "learned", "alibi", "relative", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """The shape of a model, as its config or paper states it: an embedding, layers, a head.

    A layer is a short sequence of sublayers: attention and an MLP where nothing else is said. What an architecture adds
    is a small object in a field of its own. In the formulas below h = ``hidden``, f = ``ffn_hidden``,
    L = ``num_layers``, V = ``vocab``, s = ``max_seq_len``, a = ``num_heads``, k = ``num_kv_heads``, d = ``head_dim``.

    Parameters
    ----------
    name : str
        card name, ``llama-3-70b``
    num_layers, hidden : int
        layers, those of the decoder where there is an encoder too; width of the residual stream
    num_heads, num_kv_heads, head_dim : int
        query heads, key and value heads (fewer under grouped-query attention), width of one head; a·d may differ from
        h. 0 where no layer attends
    ffn_hidden : int
        width inside the MLP; 0 where no layer has one
    gated_mlp : bool
        SwiGLU or GeGLU: three matrices instead of two
    vocab : int
        rows of the embedding, padding included where the checkpoint stores it; 0 without one and without ``head``
    max_seq_len : int
        longest sequence [token]; rows of a learned position table
    norm : {"layernorm", "rmsnorm"}
        all norms of the model
    positions : {"rope", "learned", "alibi", "relative", "none"}
        ``learned`` has a table of s rows, ``relative`` one of ``relative_buckets`` rows a stack
    tied_embeddings : bool
        the head is the embedding transposed: stored once, multiplied all the same
    qkv_bias, attention_output_bias, mlp_bias, norm_bias : bool
        which of these have a bias vector
    qk_norm : bool
        a norm of d weights on the queries and one on the keys of each layer (Qwen3)
    embedding_norm : bool
        a norm after the embedding (BLOOM)
    final_norm : bool
        a norm after the last layer; False where layers norm after the residual add (OPT-350m, BERT)
    parallel_residual : bool
        attention and MLP read the same input and are added once (GPT-NeoX); both keep their own norm
    extra_positions : int
        rows of the position table beyond s (OPT has 2)
    embedding_dim : int, optional
        width of embedding and head where it is not h: a matrix leads in and one leads out (OPT-350m)
    causal : bool
        a token attends to those before it only
    shared_norm : bool
        one norm for both branches of a parallel residual (Falcon-7B)
    post_norms : bool
        a second norm after each sublayer (Gemma-2)
    attention_sinks : bool
        a learned number a head in the denominator of the softmax (gpt-oss)
    rotary_fraction : float
        part of each head that ``rope`` rotates
    relative_buckets : int
        rows of the table of ``relative`` positions, with a columns
    token_types : int
        rows of the embedding of token types (BERT)
    head : bool
        a head over the vocabulary
    head_bias : bool
        V biases in the head (BERT)
    head_transform : bool
        a dense layer of h × h with bias and a norm before the head (BERT)
    pooler : bool
        a dense layer of h × h with bias on one token a sequence (BERT)
    num_classes : int
        rows of a linear head with bias on one token a sequence (ViT; BERT's next sentence); 0: none
    mtp : int
        multi-token-prediction modules of DeepSeek-V3: two norms, a matrix of 2h × h, a layer as the last one and a
        norm, with the model's own embedding and head. They are trained, and are no part of :attr:`num_parameters`
    mtp_layout : str
        letters, as in ``layout``, of the layers of one module; empty: one layer, as the last
    mtp_repeated : bool
        the modules are one and the same, met ``mtp`` times (Nemotron 3 Super)
    layout : str
        a letter a layer, for layers of one sublayer: M Mamba, * attention, - MLP, E experts (Nemotron-H)
    experts : Experts, optional
    latent : LatentAttention, optional
    window : SlidingWindow, optional
    mamba : Mamba, optional
        without ``layout``, every layer is a Mamba mixer alone
    linear : LinearAttention, optional
    encoder : Encoder, optional
        the model is then an encoder-decoder, and ``num_layers`` and the like are the decoder's
    patches : Patches, optional
        the input is an image; ``vocab`` is 0
    tower : Tower, optional
        a second stack beside this one
    adapters : LoRA, optional
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``; not part of a comparison

    Raises
    ------
    ValueError
        naming field, value and rule, if a count is not a whole number from 1 to its entry in
        :data:`clustersim.workload.model_check.LARGEST`, if k does not divide a, or if two fields contradict each other
    """

    name: str
    num_layers: int
    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_hidden: int
    gated_mlp: bool
    vocab: int
    max_seq_len: int
    norm: Norm
    positions: Positions
    tied_embeddings: bool
    qkv_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    qk_norm: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    parallel_residual: bool = False
    extra_positions: int = 0
    embedding_dim: int | None = None
    causal: bool = True
    shared_norm: bool = False
    post_norms: bool = False
    attention_sinks: bool = False
    rotary_fraction: float = 1.0
    relative_buckets: int = 0
    token_types: int = 0
    head: bool = True
    head_bias: bool = False
    head_transform: bool = False
    pooler: bool = False
    num_classes: int = 0
    mtp: int = 0
    mtp_layout: str = ""
    mtp_repeated: bool = False
    layout: str = ""
    experts: Experts | None = None
    latent: LatentAttention | None = None
    window: SlidingWindow | None = None
    mamba: Mamba | None = None
    linear: LinearAttention | None = None
    encoder: Encoder | None = None
    patches: Patches | None = None
    tower: Tower | None = None
    adapters: LoRA | None = None
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_model(self)
        for name, words in (("norm", get_args(Norm)), ("positions", get_args(Positions))):
            if getattr(self, name) not in words:
                raise ValueError(f"{name}: {getattr(self, name)!r} must be one of {', '.join(words)}")

    def layer(self, index: int) -> tuple[Sublayer, ...]:
        """Sublayers of layer ``index``, counted from 0, in order."""
        if self.layout:
            return (LAYOUT[self.layout[index]],)
        if self.mamba:
            return ("mamba",)
        mixer: Sublayer = "latent_attention" if self.latent else "linear_attention" if self.linear else "attention"
        crossed: tuple[Sublayer, ...] = ("cross_attention",) if self.encoder else ()
        return (mixer, *crossed, "experts" if self.experts and self.experts.at(index) else "mlp")

    def mtp_layers(self) -> tuple[tuple[Sublayer, ...], ...]:
        """Sublayers of each layer of one multi-token-prediction module."""
        return tuple((LAYOUT[letter],) for letter in self.mtp_layout) or (self.layer(self.num_layers - 1),)

    def window_at(self, index: int) -> int | None:
        """Tokens that attention in layer ``index`` looks back on; None: the whole sequence, or no attention."""
        if self.window is None or "attention" not in self.layer(index) or not self.window.slides(index):
            return None
        return self.window.tokens

    def layer_runs(self) -> tuple[LayerRun, ...]:
        """The layers as runs of consecutive equal ones, the first layer first."""
        runs = []
        kinds = ((self.layer(i), self.window_at(i)) for i in range(self.num_layers))
        first = 0
        for (sublayers, window), equal in groupby(kinds):
            length = sum(1 for _ in equal)
            runs.append(LayerRun(first=first, count=length, sublayers=sublayers, window=window))
            first += length
        return tuple(runs)

    def num_sublayers(self) -> Counter[Sublayer]:
        """How many of each kind all layers have together."""
        found: Counter[Sublayer] = Counter()
        for run in self.layer_runs():
            for name in run.sublayers:
                found[name] += run.count
        return found

    def matrices(self, name: Sublayer) -> dict[str, tuple[int, int]]:
        """Matrices of a sublayer, as :func:`clustersim.workload.sublayer.matrices` has them."""
        return matrices(self, name)

    def parameters(self, name: Sublayer) -> int:
        """Parameters of a sublayer, as :func:`clustersim.workload.sublayer.parameters` counts them."""
        return parameters(self, name)

    def norm_parameters(self, index: int) -> int:
        """Parameters of the norms of layer ``index``: one a sublayer, two with ``post_norms``, and those of q and k."""
        return count.layer_norm_parameters(self, index)

    @property
    def attention_features(self) -> int:
        """Rows of the output matrix of attention: a·d, the columns of the queries; of the values under ``latent``."""
        return self.num_heads * (self.latent.value_dim if self.latent else self.head_dim)

    @property
    def qkv_features(self) -> int:
        """Columns of queries, keys and values of one token, (a + 2k)·d; not under ``latent``."""
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim

    @property
    def expert_width(self) -> int:
        """Width of the tokens that routed experts meet: h, or that of latent experts."""
        return self.hidden if self.experts is None else self.experts.width(self.hidden)

    @property
    def layer_matrices(self) -> dict[str, tuple[int, int]]:
        """Matrices of one sublayer of each kind as (features in, features out), q, k and v, and gate and up, fused."""
        return model_matrices.layer_matrices(self)

    @property
    def outer_matrices(self) -> dict[str, tuple[int, int]]:
        """Matrices outside the layers that every token is multiplied by, as (features in, features out)."""
        return model_matrices.outer_matrices(self)

    @property
    def sequence_matrices(self) -> dict[str, tuple[int, int, int]]:
        """Matrices that a part of a sequence is multiplied by, as (features in, features out, tokens)."""
        return model_matrices.sequence_matrices(self)

    @property
    def embedding_width(self) -> int:
        """Columns of embedding and head."""
        return self.hidden if self.embedding_dim is None else self.embedding_dim

    @property
    def encoder_stack(self) -> Model | None:
        """The encoder's layers as a model of their own, without embedding and head."""
        return None if self.encoder is None else self.encoder.stack(self)

    @property
    def tower_stack(self) -> Model | None:
        """The second tower as a model of its own, without its projection."""
        return None if self.tower is None else self.tower.stack(self)

    @property
    def architecture(self) -> str:
        """What kind of model this is, in a few words."""
        kinds = set(self.num_sublayers())
        if self.tower:
            return "two towers"
        if self.encoder:
            return "encoder-decoder"
        family = "image encoder" if self.patches else "decoder" if self.causal else "encoder"
        if "mamba" in kinds:
            return f"{'state-space' if kinds == {'mamba'} else 'hybrid'} {family}"
        sort = "mixture-of-experts" if "experts" in kinds else "linear-attention" if self.linear else "dense"
        return f"{sort} {family}"

    @property
    def parameters_per_layer(self) -> dict[str, int]:
        """Parameters of one sublayer of each kind, and of the norms of the layer that has most."""
        return count.parameters_per_layer(self)

    @property
    def parameters_by_part(self) -> dict[str, int]:
        """Parameters of the whole model by part; a tied head counts in the embedding alone."""
        return count.parameters_by_part(self)

    @property
    def num_parameters(self) -> int:
        """Distinct parameters of the model: the sum of :attr:`parameters_by_part`."""
        return sum(self.parameters_by_part.values())

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token meets: all, but for the routed experts that it is not sent to."""
        if self.experts is None:
            return self.num_parameters
        return self.num_parameters - self.num_sublayers()["experts"] * self.experts.idle_parameters(self.hidden)

    @property
    def mtp_parameters(self) -> int:
        """Parameters of the multi-token-prediction modules, beyond :attr:`num_parameters`."""
        return count.mtp_parameters(self)

    @property
    def adapter_parameters(self) -> int:
        """Parameters of the adapters; the only ones that are trained where there are any."""
        return count.adapter_parameters(self)

    @property
    def num_trainable_parameters(self) -> int:
        """Parameters that have a gradient, those of multi-token prediction included."""
        return self.num_parameters + self.mtp_parameters if self.adapters is None else self.adapter_parameters

    @property
    def matmul_parameters(self) -> int:
        """Parameters that cost 2 FLOP a token in the forward pass.

        The elements of the matrices of all layers, of the experts those that a token meets, and of
        :attr:`outer_matrices`, the head also when it is tied; not the embedding, which is a look-up, nor biases and
        norms. An encoder's count as if it read as many tokens as the decoder.
        """
        return count.parameters_per_token(self)
