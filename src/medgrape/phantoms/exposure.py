"""From attenuation to the grey values of a film: scatter, noise, window and display curve."""

import cv2
import numpy as np
from jaxtyping import UInt8

from medgrape.phantoms.anatomy import Exam
from medgrape.phantoms.canvas import Canvas, Layer


def expose(canvas: Canvas, attenuation: Layer, exam: Exam) -> UInt8[np.ndarray, "size size"]:
    """Return the film in 8 bits: scatter, window, display curve and noise."""
    random = exam.visit_random("exposure")
    portable = exam.view == "AP"
    scatter = canvas.soften(attenuation, 0.06)
    veil = random.uniform(0.08, 0.16) + 0.06 * portable
    image = (1 - veil) * attenuation + veil * scatter
    low = random.normal(0.06, 0.025)
    high = random.normal(1.16, 0.07)
    latitude = random.normal(1.0, 0.14)
    window = np.clip((image - low) / (high - low), 0, None)
    curve = _display(window, latitude)
    # a stream of its own: how much of it is drawn depends on the film's size, and nothing else may
    grain = _grain(canvas, exam.visit_random("grain"), 0.007 + 0.003 * portable)
    # few photons get through the dense parts, so they are noisier
    curve += grain * (0.6 + 0.8 * curve)
    black, white = random.uniform(0.0, 0.03), random.uniform(0.90, 0.97)
    pixels = np.clip(255 * (black + (white - black) * curve), 0, 255).astype(np.uint8)
    return _collimated(pixels, random)


def _collimated(pixels: UInt8[np.ndarray, "size size"], random: np.random.Generator) -> UInt8[np.ndarray, "size size"]:
    """The film with a dark margin where the beam ended, on some films."""
    margins = random.uniform(-0.02, 0.03, 4) * (random.random() < 0.3)
    top, right, bottom, left = np.clip(np.round(margins * len(pixels)), 0, None).astype(int).tolist()
    framed = np.zeros_like(pixels)
    inside = slice(top, len(pixels) - bottom), slice(left, len(pixels) - right)
    framed[inside] = pixels[inside]
    return framed


def _display(window: Layer, latitude: float) -> Layer:
    """The display curve: linear in the lungs, with a soft shoulder where mediastinum and abdomen would saturate."""
    bent = cv2.pow(window, float(1.05 * latitude))
    return np.asarray((1 - cv2.exp(bent * (-1.1 - 1.25 * bent))) * np.float32(1 / 0.905))


def _grain(canvas: Canvas, random: np.random.Generator, strength: float) -> Layer:
    """Quantum noise, correlated over about a 500th of the film at every size."""
    cells = min(canvas.size, 512)
    # uniform noise of standard deviation 1: the blur makes it nearly Gaussian, faster than drawing Gaussian noise
    noise = (random.random((cells, cells), np.float32) - np.float32(0.5)) * np.float32(12**0.5)
    sheet = cv2.GaussianBlur(noise, (3, 3), 0.6)
    if cells != canvas.size:
        sheet = cv2.resize(sheet, (canvas.size, canvas.size), interpolation=cv2.INTER_CUBIC)
    return np.asarray(sheet * np.float32(strength * 2.0), np.float32)
