"""A small Whisper-style model with seeded weights, as two graphs with fixed shapes and caches, and what it computes."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

MELS, FRAMES, AUDIO = 80, 400, 200  # 4 s of features become 200 positions
WIDTH, HEADS, LAYERS = 192, 3, 2
HEAD = WIDTH // HEADS
TOKENS, CACHE = 1000, 64
SAMPLES = 4
NOTHING = -1e4  # finite also in fp16, where -inf would make NaN


def split(x: Tensor) -> Tensor:
    """[time, width] to [heads, time, head]."""
    return x.reshape(-1, HEADS, HEAD).transpose(0, 1)


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """[heads, time, head] each; gives [time, width]."""
    scores = query @ keys.transpose(1, 2) / math.sqrt(HEAD)
    if mask is not None:
        scores = scores + mask
    return (scores.softmax(-1) @ values).transpose(0, 1).reshape(-1, WIDTH)


class Projections(nn.Module):
    """Those of one attention."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))


class FeedForward(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


class Encoder(nn.Module):
    """Features to the keys and values that the decoder's cross attention reads."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(MELS, WIDTH, 3, padding=1)
        self.conv2 = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.randn(AUDIO, WIDTH) * 0.1)
        self.attention = nn.ModuleList(Projections() for _ in range(LAYERS))
        self.feed_forward = nn.ModuleList(FeedForward() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.cross = nn.ModuleList(Projections() for _ in range(LAYERS))

    def forward(self, mel: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.gelu(self.conv2(functional.gelu(self.conv1(mel))))
        x = x[0].transpose(0, 1) + self.positions
        for own, feed_forward in zip(self.attention, self.feed_forward, strict=True):
            y = own.norm(x)
            x = x + own.out(attend(split(own.q(y)), split(own.k(y)), split(own.v(y))))
            x = x + feed_forward(x)
        x = self.norm(x)
        keys = torch.stack([split(each.k(x)) for each in self.cross])
        return keys, torch.stack([split(each.v(x)) for each in self.cross])


class Decoder(nn.Module):
    """One token. The application keeps the cache, and puts the new keys and values at `position` of it."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Embedding(CACHE, WIDTH)
        self.attention = nn.ModuleList(Projections() for _ in range(LAYERS))
        self.cross = nn.ModuleList(Projections() for _ in range(LAYERS))
        self.feed_forward = nn.ModuleList(FeedForward() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.register_buffer("places", torch.arange(CACHE, dtype=torch.int32))

    def forward(
        self, token: Tensor, position: Tensor, keys: Tensor, values: Tensor, cross_keys: Tensor, cross_values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = self.tokens(token) + self.positions(position)
        past = (self.places >= position).to(torch.float32) * NOTHING
        mask = torch.cat([past, torch.zeros(1)])
        new_keys, new_values = [], []
        for n, (own, cross, feed_forward) in enumerate(zip(self.attention, self.cross, self.feed_forward, strict=True)):
            y = own.norm(x)
            k, v = split(own.k(y)), split(own.v(y))
            seen = torch.cat([keys[n], k], 1), torch.cat([values[n], v], 1)
            x = x + own.out(attend(split(own.q(y)), *seen, mask))
            x = x + cross.out(attend(split(cross.q(cross.norm(x))), cross_keys[n], cross_values[n]))
            x = x + feed_forward(x)
            new_keys.append(k)
            new_values.append(v)
        return self.norm(x) @ self.tokens.weight.T, torch.stack(new_keys), torch.stack(new_values)


def mel() -> Tensor:
    return torch.rand(1, MELS, FRAMES) * 2 - 1


def encoder_feed() -> dict[str, Tensor]:
    return {"mel": mel()}


def decoder_feed(encoder: Encoder) -> dict[str, Tensor]:
    position = int(torch.randint(1, CACHE, ()))
    cache = torch.randn(2, LAYERS, HEADS, CACHE, HEAD) * 0.5
    cache[:, :, :, position:] = 0
    keys, values = encoder(mel())
    return {
        "token": torch.randint(0, TOKENS, (1,), dtype=torch.int32),
        "position": torch.tensor([position], dtype=torch.int32),
        "keys": cache[0],
        "values": cache[1],
        "cross_keys": keys,
        "cross_values": values,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["encoder", "decoder"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    args = parser.parse_args()
    torch.manual_seed(0)
    encoder, decoder = Encoder().eval(), Decoder().eval()
    model: Any
    if args.part == "encoder":
        model, outputs = encoder, ["cross_keys", "cross_values"]
        feeds = [encoder_feed() for _ in range(SAMPLES)]
    else:
        model, outputs = decoder, ["logits", "new_keys", "new_values"]
        feeds = [decoder_feed(encoder) for _ in range(SAMPLES)]
    wants = [dict(zip(outputs, model(**feed), strict=True)) for feed in feeds]
    arrays = {f"feed_{name}": np.stack([feed[name].numpy() for feed in feeds]) for name in feeds[0]}
    arrays |= {f"want_{name}": np.stack([want[name].numpy() for want in wants]) for name in outputs}
    np.savez(args.reference, **arrays)
    torch.onnx.export(
        model,
        tuple(feeds[0].values()),
        args.out,
        input_names=list(feeds[0]),
        output_names=outputs,
        opset_version=18,
        dynamo=True,
        external_data=False,
    )


if __name__ == "__main__":
    with torch.inference_mode():
        main()
