"""Tokenizers and indexed datasets from Python, by libquern.so; needs NumPy, and nothing to be built.

    tokenizer = quern.Tokenizer.from_file("tokenizer.json")
    tokenizer.encode("The mill").ids
    data = quern.Dataset("corpus_text_document")
    data[0]

Names are those of tokenizers.Tokenizer and of Megatron's IndexedDataset and GPTDataset, where they mean the same.  All
objects may be used by several threads, which do not wait for each other (the interpreter's lock is not held), and go to
other processes by being opened there again.  What fails raises quern.Error, whose code is one of quern.h.

The library is looked for as the system does; the environment's QUERN_LIBRARY may name its file.
"""

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np

__all__ = ["Dataset", "Encoding", "Error", "GPTDataset", "Tokenizer", "version"]

SPECIAL, SKIP_SPECIAL = 1, 2
DTYPES = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.float64, 7: np.float32, 8: np.uint16}
PARTS = ("train", "valid", "test")


class _Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("message", ctypes.c_char * 508)]


class _TokenizerSettings(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("pattern", c_char_p), ("special_tokens", c_char_p), ("eod", c_char_p)]


class _SamplesSettings(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("paths", POINTER(c_char_p)), ("n_paths", c_size_t), ("split", c_char_p),
                ("part", c_int), ("seed", c_uint32), ("sequence_length", c_int64), ("samples", c_int64), ("cache", c_char_p)]


_FUNCTIONS = {  # name: result, arguments
    "version": (c_char_p,),
    "tokenizer_open": (c_int, POINTER(c_void_p), c_char_p, POINTER(_TokenizerSettings), POINTER(_Error)),
    "tokenizer_close": (None, c_void_p),
    "vocab_size": (c_size_t, c_void_p),
    "token_to_id": (c_int64, c_void_p, c_char_p, c_size_t),
    "id_to_token": (c_int64, c_void_p, c_uint32, c_void_p, c_size_t),
    "is_special": (c_int, c_void_p, c_uint32),
    "eod": (c_int64, c_void_p),
    "encode": (c_int64, c_void_p, c_char_p, c_size_t, c_int, c_void_p, c_size_t, POINTER(_Error)),
    "encode_batch": (c_int64, c_void_p, POINTER(c_char_p), c_void_p, c_size_t, c_int, c_int, c_void_p, c_size_t, c_void_p,
                     POINTER(_Error)),
    "decode": (c_int64, c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_size_t, POINTER(_Error)),
    "decode_batch": (c_int64, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_size_t, c_void_p,
                     POINTER(_Error)),
    "dataset_open": (c_int, POINTER(c_void_p), c_char_p, POINTER(_Error)),
    "dataset_close": (None, c_void_p),
    "dataset_sequences": (c_size_t, c_void_p),
    "dataset_documents": (c_size_t, c_void_p),
    "dataset_dtype": (c_int, c_void_p),
    "dataset_lengths": (c_int, c_void_p, c_size_t, c_size_t, c_void_p, POINTER(_Error)),
    "dataset_boundaries": (c_int, c_void_p, c_size_t, c_size_t, c_void_p, POINTER(_Error)),
    "dataset_read": (c_int64, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, POINTER(_Error)),
    "samples_open": (c_int, POINTER(c_void_p), POINTER(_SamplesSettings), POINTER(_Error)),
    "samples_close": (None, c_void_p),
    "samples_count": (c_int64, c_void_p),
    "samples_read": (c_int, c_void_p, c_int64, c_void_p, POINTER(_Error)),
}


def _load():
    library = ctypes.CDLL(os.environ.get("QUERN_LIBRARY", "libquern.so.0"))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, "quern_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_lib = _load()


class Error(Exception):
    """A call that failed, with the library's message."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def version():
    """The library's version."""
    return _lib.quern_version().decode()


def _call(function, *arguments):
    """What a function returns whose last argument is an error."""
    e = _Error()
    result = function(*arguments, byref(e))
    if result < 0:
        raise Error(e.code, e.message.decode(errors="replace"))
    return result


def _filled(dtype, room, call):
    """The array that call(address, room) fills, made once more where it was too small."""
    while True:
        out = np.empty(room, dtype)
        n = call(out.ctypes.data, room)
        if n <= room:
            return out[:n]
        room = n


def _bytes(text):
    return text.encode() if isinstance(text, str) else text


class _Handle:
    """What is opened when it is made and closed when nobody has it any more; another process opens its own."""

    def __init__(self, open, close, *arguments):
        self._close, self._handle = close, c_void_p()
        _call(open, byref(self._handle), *arguments)

    def __del__(self):
        if getattr(self, "_handle", None):
            self._close(self._handle)

    def __reduce__(self):
        return type(self), self._made_of


class Encoding:
    """The ids of a text: .array, of NumPy (uint32), or .ids, a list."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    @property
    def ids(self):
        return self.array.tolist()

    def __len__(self):
        return len(self.array)


class Tokenizer(_Handle):
    """A tokenizer of any file that quern reads.  pattern, special_tokens (a file) and eod as quern_tokenizer_settings."""

    def __init__(self, path, pattern=None, special_tokens=None, eod=None):
        self._made_of = path, pattern, special_tokens, eod
        settings = _TokenizerSettings(
            ctypes.sizeof(_TokenizerSettings), None if pattern is None else pattern.encode(),
            None if special_tokens is None else os.fsencode(special_tokens), None if eod is None else str(eod).encode())
        super().__init__(_lib.quern_tokenizer_open, _lib.quern_tokenizer_close, os.fsencode(path), byref(settings))

    @classmethod
    def from_file(cls, path, **settings):
        return cls(path, **settings)

    def encode(self, text, allow_special=True):
        """The ids of a text, a str or bytes.  allow_special: special tokens written in it become their ids, as in
        tokenizers; else they are plain text.  No tokens are put around it (tokenizers: add_special_tokens=False)."""
        data, flags = _bytes(text), SPECIAL if allow_special else 0
        return Encoding(_filled(np.uint32, len(data) + 16, lambda ids, room: _call(
            _lib.quern_encode, self._handle, data, len(data), flags, ids, room)))

    def encode_batch(self, texts, allow_special=True, threads=0):
        """The Encodings of texts, by at most so many threads; 0: as many as this process may use."""
        data, flags = [_bytes(text) for text in texts], SPECIAL if allow_special else 0
        sizes = np.fromiter(map(len, data), np.uintp, len(data))
        ends = np.empty(len(data), np.uintp)
        pointers = (c_char_p * len(data))(*data)
        ids = _filled(np.uint32, int(sizes.sum()) + 16, lambda ids, room: _call(
            _lib.quern_encode_batch, self._handle, pointers, sizes.ctypes.data, len(data), flags, threads, ids, room,
            ends.ctypes.data))
        begin, out = 0, []
        for end in ends.tolist():
            out.append(Encoding(ids[begin:end]))
            begin = end
        return out

    def decode_bytes(self, ids, skip_special_tokens=True):
        """The bytes that ids stand for."""
        ids = np.ascontiguousarray(ids, np.uint32)
        return _filled(np.uint8, 8 * len(ids) + 64, lambda text, room: _call(
            _lib.quern_decode, self._handle, ids.ctypes.data, len(ids), SKIP_SPECIAL if skip_special_tokens else 0, text,
            room)).tobytes()

    def decode(self, ids, skip_special_tokens=True):
        """Their text; what is no UTF-8 becomes U+FFFD."""
        return self.decode_bytes(ids, skip_special_tokens).decode(errors="replace")

    def decode_batch(self, sequences, skip_special_tokens=True, threads=0):
        """The texts of several sequences of ids."""
        arrays = [np.asarray(ids, np.uint32) for ids in sequences]
        ids = np.concatenate(arrays) if arrays else np.empty(0, np.uint32)
        ends = np.cumsum([len(a) for a in arrays], dtype=np.uintp)
        text_ends = np.empty(len(arrays), np.uintp)
        text = _filled(np.uint8, 8 * len(ids) + 64, lambda text, room: _call(
            _lib.quern_decode_batch, self._handle, ids.ctypes.data, ends.ctypes.data, len(arrays),
            SKIP_SPECIAL if skip_special_tokens else 0, threads, text, room, text_ends.ctypes.data)).tobytes()
        ends = [0] + text_ends.tolist()
        return [text[begin:end].decode(errors="replace") for begin, end in zip(ends, ends[1:])]

    def token_to_id(self, token):
        """The id of the token that stands for this text (a str or bytes, as " the", not as a file writes it), or None."""
        token = _bytes(token)
        i = _lib.quern_token_to_id(self._handle, token, len(token))
        return None if i < 0 else i

    def id_to_token(self, i):
        """The bytes that an id stands for, or None."""
        n = _lib.quern_id_to_token(self._handle, i, None, 0) if 0 <= i < 1 << 32 else -1
        if n < 0:
            return None
        token = ctypes.create_string_buffer(n)
        _lib.quern_id_to_token(self._handle, i, token, n)
        return token.raw

    def is_special(self, i):
        return 0 <= i < 1 << 32 and _lib.quern_is_special(self._handle, i) == 1

    def get_vocab_size(self):
        """The highest id, plus one."""
        return _lib.quern_vocab_size(self._handle)

    @property
    def eod(self):
        """The id of the token that ends a document, or None."""
        i = _lib.quern_eod(self._handle)
        return None if i < 0 else i


class Dataset(_Handle):
    """PREFIX.bin and PREFIX.idx: a sequence of token arrays."""

    def __init__(self, path_prefix):
        self._made_of = (path_prefix,)
        super().__init__(_lib.quern_dataset_open, _lib.quern_dataset_close, os.fsencode(path_prefix))
        self.dtype = np.dtype(DTYPES[_lib.quern_dataset_dtype(self._handle)])

    def __len__(self):
        """How many sequences there are."""
        return _lib.quern_dataset_sequences(self._handle)

    def get(self, idx, offset=0, length=None):
        """The tokens of sequence idx from offset on: length of them, or all."""
        at = range(len(self))[idx]
        if offset < 0 or (length is not None and length < 0):
            raise IndexError("tokens before the first")
        read = lambda out, room: _call(_lib.quern_dataset_read, self._handle, at, offset, out, room)
        n = read(None, 0)
        if length is not None:
            if length > n:
                raise IndexError(f"sequence {at} has {n} tokens from {offset} on, not {length}")
            n = length
        out = np.empty(n, np.int32)
        read(out.ctypes.data, n)
        return out.astype(self.dtype, copy=False)

    def __getitem__(self, idx):
        """The tokens of a sequence, or a list of those of a slice."""
        if isinstance(idx, slice):
            return [self.get(i) for i in range(*idx.indices(len(self)))]
        return self.get(idx)

    @property
    def sequence_lengths(self):
        out = np.empty(len(self), np.int32)
        _call(_lib.quern_dataset_lengths, self._handle, 0, len(out), out.ctypes.data)
        return out

    @property
    def document_indices(self):
        """Document k has the sequences from entry k up to entry k + 1."""
        out = np.empty(_lib.quern_dataset_documents(self._handle) + 1, np.int64)
        _call(_lib.quern_dataset_boundaries, self._handle, 0, len(out), out.ctypes.data)
        return out


class GPTDataset(_Handle):
    """Training samples of sequence_length + 1 tokens, in Megatron's order.  paths: a prefix, or the words of --data-path;
    index_split: which part of split, as "969,30,1" (None: all is for this part); num_samples: None is one epoch."""

    def __init__(self, paths, sequence_length, num_samples=None, seed=1234, split=None, index_split="train",
                 path_to_cache=None):
        self._made_of = paths, sequence_length, num_samples, seed, split, index_split, path_to_cache
        words = [os.fsencode(x if isinstance(x, (str, bytes, os.PathLike)) else str(x))
                 for x in ([paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths)]
        self._length = sequence_length
        settings = _SamplesSettings(
            ctypes.sizeof(_SamplesSettings), (c_char_p * len(words))(*words), len(words), split and split.encode(),
            PARTS.index(index_split), seed, sequence_length, num_samples or 0, path_to_cache and os.fsencode(path_to_cache))
        super().__init__(_lib.quern_samples_open, _lib.quern_samples_close, byref(settings))

    def __len__(self):
        return _lib.quern_samples_count(self._handle)

    def __getitem__(self, idx):
        """The tokens of a sample, int32."""
        out = np.empty(self._length + 1, np.int32)
        _call(_lib.quern_samples_read, self._handle, range(len(self))[idx], out.ctypes.data)
        return out
