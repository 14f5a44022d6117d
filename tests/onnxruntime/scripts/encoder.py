"""A sentence encoder, written for ONNX Runtime. usage: encoder.py MODEL.onnx (of make_encoder.py)"""
import sys
import zlib

import numpy as np
import onnxruntime as ort

SENTENCES = ["A cat sits on the mat.", "A kitten is sitting on a rug.", "The stock market fell by two percent today because of the news.", "Rain."]


def tokens(sentence):
    return [1] + [2 + zlib.crc32(word.lower().encode()) % 998 for word in sentence.split()] + [0]


class Encoder:
    def __init__(self, path):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [item.name for item in self.session.get_inputs()]

    def encode(self, sentences):
        lists = [tokens(sentence) for sentence in sentences]
        longest = max(map(len, lists))
        ids = np.array([words + [0] * (longest - len(words)) for words in lists], np.int64)
        mask = np.array([[1] * len(words) + [0] * (longest - len(words)) for words in lists], np.int64)
        feed = dict(zip(("input_ids", "attention_mask"), (ids, mask)))
        states = self.session.run(None, {name: feed[name] for name in self.names})[0]
        mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)


encoder = Encoder(sys.argv[1])
vectors = encoder.encode(SENTENCES)
print(np.round(vectors @ vectors.T, 4).tolist())
print([round(float(np.abs(encoder.encode([sentence])[0] - vector).max()), 4) for sentence, vector in zip(SENTENCES, vectors)])
