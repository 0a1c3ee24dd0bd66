"""Makes feeds/*.npz, once, with Pillow: text, rendered and normalised as PP-OCR's own code does; and lines to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FEEDS = Path(__file__).parent / "feeds"
# What each graph's own pre-processing subtracts and divides by, on values from 0 to 1.
IMAGENET = (np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]))
CENTRED = (np.full(3, 0.5), np.full(3, 0.5))
LINES = [
    "context binary", "one for each chip", "Snapdragon 8 Elite", "SM8750 and SM8850", "64 samples of 32 ms",
    "Invoice No. 2026-1187", "Total: 1,284.50 EUR", "open the window", "HTP v79, 8 MB VTCM", "quick brown foxes",
    "Room 4B, second floor", "keep away from heat",
]  # fmt: skip


def rendered(width: int, height: int, lines: list[tuple[int, int, int, str]]) -> Image.Image:
    """White paper with lines of (x, y, size, text) in black."""
    image = Image.new("RGB", (width, height), "white")
    for x, y, size, text in lines:
        ImageDraw.Draw(image).text((x, y), text, fill="black", font=ImageFont.load_default(size))
    return image


def normalised(image: Image.Image, scheme: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    mean, deviation = scheme
    pixels = (np.asarray(image, np.float32) / 255 - mean) / deviation
    return pixels.transpose(2, 0, 1)[np.newaxis].astype(np.float32)


def main() -> None:
    page = [(20, 24, 28, "Context binary"), (24, 110, 20, "one for each chip"), (60, 190, 34, "SM8750  v79")]
    line = rendered(320, 48, [(8, 4, 36, "Snapdragon 8 Elite")])
    FEEDS.mkdir(exist_ok=True)
    for name, image, scheme in (
        ("detector", rendered(320, 320, page), IMAGENET),
        ("recogniser", line, CENTRED),
        ("classifier", line.crop((0, 0, 192, 48)), CENTRED),
    ):
        np.savez_compressed(FEEDS / f"{name}.npz", x=normalised(image, scheme))
    # Grey pixels, as a camera would give them: read_text.py normalises.
    images = [np.asarray(rendered(320, 48, [(6, 8, 26, text)]).convert("L")) for text in LINES]
    np.savez_compressed(FEEDS.parent / "lines.npz", images=np.stack(images), texts=np.array(LINES))
    # What the classifier is calibrated on, for quantized.yaml: text as it is, and upside down.
    crops = np.stack([normalised(Image.fromarray(each[:, :192]).convert("RGB"), CENTRED) for each in images])
    np.savez_compressed(FEEDS / "classifier-lines.npz", x=np.concatenate([crops, crops[..., ::-1, ::-1]]))


if __name__ == "__main__":
    main()
