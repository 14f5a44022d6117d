"""Classifies texts by their kind with magika, which is written for ONNX Runtime. usage: classifier.py"""
import magika

TEXTS = {"python": b"import os\n\n\ndef main():\n    for name in os.listdir('.'):\n        print(name)\n\n\nif __name__ == '__main__':\n    main()\n",
         "json": b'{"name": "mendel", "members": [1, 2, 3], "nested": {"key": "value", "other": [true, false, null]}}\n' * 4,
         "html": b"<!DOCTYPE html>\n<html><head><title>A page</title></head><body><p>Some text</p><ul><li>one</li></ul></body></html>\n" * 3,
         "c": b"#include <stdio.h>\n\nint main(void) {\n  for (int k = 0; k < 3; ++k) printf(\"%d\\n\", k);\n  return 0;\n}\n"}
classifier = magika.Magika()
for name, text in TEXTS.items():
    result = classifier.identify_bytes(text)
    print(name, result.output.label, round(float(result.score), 3))
