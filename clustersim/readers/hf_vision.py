"""Configs that take images: ViT, and CLIP with its two towers."""

from __future__ import annotations

from clustersim.readers.hf_fields import Fields, classic, count, heads, part, whole
from clustersim.readers.json_object import JsonObject
from clustersim.workload.shape.patches import Patches
from clustersim.workload.shape.tower import Tower

__all__ = ["clip", "vit"]


def vit(config: JsonObject) -> Fields:
    """ViT for image classification; ``ViTModel`` in ``architectures`` has a pooler and no classes."""
    hidden = count(config, "hidden", "hidden_size", default=768)
    num_heads, head_dim = heads(config, hidden, "num_attention_heads", default=12)
    bare = config.take("architectures") == ["ViTModel"]
    labels = config.take("id2label")
    named = len(labels) if isinstance(labels, dict) else None
    classes = 0 if bare else whole(config, "num_classes", "num_labels", default=named or 2)
    config.take("label2id")
    patches = _patches(config, "patches.", patch_size=16, bias=True)
    bias = config.flag("qkv_bias", "qkv_bias", default=True)
    return classic(num_heads, head_dim) | {
        "num_layers": count(config, "num_layers", "num_hidden_layers", default=12),
        "hidden": hidden,
        "ffn_hidden": count(config, "ffn_hidden", "intermediate_size", default=3072),
        "vocab": 0,
        "max_seq_len": patches.num_tokens if patches else 0,
        "positions": "learned",
        "tied_embeddings": False,
        "qkv_bias": bias,
        "causal": False,
        "head": False,
        "pooler": bare,
        "num_classes": classes,
        "patches": patches,
    }


def clip(config: JsonObject) -> Fields:
    """CLIP: a text tower that is causal, an image tower, and a projection of each."""
    text, image = config.inner("text_config"), config.inner("vision_config")
    hidden = count(text, "hidden", "hidden_size", default=512)
    num_heads, head_dim = heads(text, hidden, "num_attention_heads", default=8)
    fields = classic(num_heads, head_dim) | {
        "num_layers": count(text, "num_layers", "num_hidden_layers", default=12),
        "hidden": hidden,
        "ffn_hidden": count(text, "ffn_hidden", "intermediate_size", default=2048),
        "vocab": count(text, "vocab", "vocab_size", default=49_408),
        "max_seq_len": count(text, "max_seq_len", "max_position_embeddings", default=77),
        "positions": "learned",
        "tied_embeddings": False,
        "head": False,
    }
    patches = _patches(image, "tower.patches.", patch_size=32, bias=False)
    seen = count(image, "tower.hidden", "hidden_size", default=768)
    image_heads = count(image, "tower.num_heads", "num_attention_heads", default=12)
    if image_heads and seen % image_heads:
        image.fault("num_attention_heads", f"must divide the hidden size of {seen}")
    shape = {
        "num_layers": count(image, "tower.num_layers", "num_hidden_layers", default=12),
        "ffn_hidden": count(image, "tower.ffn_hidden", "intermediate_size", default=3072),
    }
    for inner in (text, image):  # what older files repeat inside
        inner.take("projection_dim")
        inner.take("architectures")
        inner.take("model_type")
    for key in ("text_config_dict", "vision_config_dict"):
        config.take(key)
    config.absorb("text_config", text)
    config.absorb("vision_config", image)
    projection = count(config, "tower.projection", "projection_dim", default=512)
    tower = part(
        config,
        "tower",
        Tower,
        **shape,
        hidden=seen,
        num_heads=image_heads,
        head_dim=seen // image_heads if image_heads else 0,
        projection=projection,
        patches=patches,
    )
    return fields | {"tower": tower}


def _patches(config: JsonObject, prefix: str, *, patch_size: int, bias: bool) -> Patches | None:
    return part(
        config,
        prefix.rstrip("."),
        Patches,
        image_size=count(config, f"{prefix}image_size", "image_size", default=224),
        patch_size=count(config, f"{prefix}patch_size", "patch_size", default=patch_size),
        channels=count(config, f"{prefix}channels", "num_channels", default=3),
        bias=bias,
    )
