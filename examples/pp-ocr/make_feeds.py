"""Makes feeds/*.npz, once, with Pillow: text, rendered and normalised as PP-OCR's own code does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FEEDS = Path(__file__).parent / "feeds"
# What each graph's own pre-processing subtracts and divides by, on values from 0 to 1.
IMAGENET = (np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]))
CENTRED = (np.full(3, 0.5), np.full(3, 0.5))


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


if __name__ == "__main__":
    main()
