"""Reads the lines of a picture with rapidocr-onnxruntime, which is written for ONNX Runtime. usage: ocr.py"""
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

picture = Image.new("RGB", (640, 240), "white")
draw = ImageDraw.Draw(picture)
font = ImageFont.load_default(32)
for number, line in enumerate(["Invoice 20731", "Total 148.50 EUR", "Thank you for your order"]):
    draw.text((30, 20 + 70 * number), line, fill="black", font=font)
for box, text, score in RapidOCR()(np.array(picture))[0]:
    print(text, round(float(score), 3), [[round(float(x)) for x in corner] for corner in box])
