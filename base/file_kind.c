#include "base/file_kind.h"

/* What is to be done with a file. */
enum use { UNPACK, CONVERT, EXTRACT, OTHER_TEXT, RECODE, RECODE_32, NO_TEXT };

static const char *const advice[] = {
    [UNPACK] = "unpack it first",
    [CONVERT] = "write its rows as JSON lines first, an object with a \"text\" each",
    [EXTRACT] = "quern extract makes documents of it",
    [OTHER_TEXT] = "have its text extracted first",
    [RECODE] = "convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)",
    [RECODE_32] = "convert it to UTF-8 first (iconv -f UTF-32 -t UTF-8)",
    [NO_TEXT] = "it holds no text",
};

struct kind {
    const char *magic;
    unsigned short n, at;
    bool printable; /* text can begin so too: it counts with a binary byte behind it only */
    enum use use;
    const char *name;
};

#define MAGIC(s) s, sizeof s - 1
static const struct kind kinds[] = {
    /* rows and columns */
    {MAGIC("PAR1"), 0, true, UNPACK, "a Parquet file within a compressed one"},
    {MAGIC("PARE"), 0, true, CONVERT, "an encrypted Parquet file"},
    {MAGIC("ARROW1"), 0, true, CONVERT, "an Arrow file (Feather)"},
    {MAGIC("FEA1"), 0, true, CONVERT, "a Feather file"},
    {MAGIC("\xFF\xFF\xFF\xFF"), 0, false, CONVERT, "a stream of Arrow"},
    {MAGIC("Obj\x01"), 0, false, CONVERT, "an Avro file"},
    {MAGIC("ORC"), 0, true, CONVERT, "an ORC file"},
    {MAGIC("SQLite format 3\0"), 0, false, CONVERT, "an SQLite database"},
    {MAGIC("\x89HDF\r\n\x1a\n"), 0, false, CONVERT, "an HDF5 file"},
    {MAGIC("\x93NUMPY"), 0, false, CONVERT, "a NumPy array"},
    /* archives and what is compressed */
    {MAGIC("PK\3\4"), 0, false, UNPACK, "a zip archive (or .docx, .xlsx, .epub, .jar)"},
    {MAGIC("PK\5\6"), 0, false, UNPACK, "an empty zip archive"},
    {MAGIC("Rar!\x1a\x07"), 0, false, UNPACK, "a RAR archive"},
    {MAGIC("7z\xBC\xAF\x27\x1C"), 0, false, UNPACK, "a 7z archive"},
    {MAGIC("!<arch>\n"), 0, false, UNPACK, "an ar archive"},
    {MAGIC("\xED\xAB\xEE\xDB"), 0, false, UNPACK, "an RPM package"},
    {MAGIC("MSCF\0\0\0\0"), 0, false, UNPACK, "a cabinet archive"},
    {MAGIC("070701"), 0, true, UNPACK, "a cpio archive"},
    {MAGIC("LZIP\x01"), 0, false, UNPACK, "an lzip file"},
    {MAGIC("\x5D\0\0"), 0, false, UNPACK, "an lzma file"},
    {MAGIC("\x1f\x9d"), 0, false, UNPACK, "a file of compress (.Z)"},
    {MAGIC("\x89LZO\0\r\n\x1a\n"), 0, false, UNPACK, "an lzop file"},
    {MAGIC("\xff\x06\0\0sNaPpY"), 0, false, UNPACK, "a snappy file"},
    {MAGIC("\x02\x21\x4c\x18"), 0, false, UNPACK, "an lz4 file of the old format"},
    {MAGIC("\x1f\x8b\x08"), 0, false, UNPACK, "a gzip file within a compressed one"},
    {MAGIC("\x28\xB5\x2F\xFD"), 0, false, UNPACK, "a zstd file within a compressed one"},
    {MAGIC("\xFD" "7zXZ\0"), 0, false, UNPACK, "an xz file within a compressed one"},
    {MAGIC("BZh91AY&SY"), 0, false, UNPACK, "a bzip2 file within a compressed one"},
    {MAGIC("\x04\x22\x4D\x18"), 0, false, UNPACK, "an lz4 file within a compressed one"},
    /* what quern extract reads */
    {MAGIC("WARC/1."), 0, false, EXTRACT, "a web archive (WARC)"},
    {MAGIC("WARC/0."), 0, false, EXTRACT, "a web archive (WARC)"},
    {MAGIC("filedesc://"), 0, false, EXTRACT, "a web archive (ARC)"},
    {MAGIC("ustar"), 257, false, EXTRACT, "a tar archive"},
    /* documents whose text others extract */
    {MAGIC("%PDF-"), 0, false, OTHER_TEXT, "a PDF document"},
    {MAGIC("%!PS-"), 0, false, OTHER_TEXT, "a PostScript document"},
    {MAGIC("{\\rtf1"), 0, false, OTHER_TEXT, "an RTF document"},
    {MAGIC("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), 0, false, OTHER_TEXT, "an old Office document (.doc, .xls)"},
    {MAGIC("AT&TFORM"), 0, true, OTHER_TEXT, "a DjVu document"},
    {MAGIC("\xFF\xFE\0\0"), 0, false, RECODE_32, "text in UTF-32"},
    {MAGIC("\0\0\xFE\xFF"), 0, false, RECODE_32, "text in UTF-32"},
    {MAGIC("\xFF\xFE"), 0, false, RECODE, "text in UTF-16"},
    {MAGIC("\xFE\xFF"), 0, false, RECODE, "text in UTF-16"},
    /* no text at all */
    {MAGIC("\x89PNG\r\n\x1a\n"), 0, false, NO_TEXT, "a PNG image"},
    {MAGIC("\xFF\xD8\xFF"), 0, false, NO_TEXT, "a JPEG image"},
    {MAGIC("GIF87a"), 0, true, NO_TEXT, "a GIF image"},
    {MAGIC("GIF89a"), 0, true, NO_TEXT, "a GIF image"},
    {MAGIC("RIFF"), 0, true, NO_TEXT, "a RIFF file (WebP, WAV, AVI)"},
    {MAGIC("II*\0"), 0, false, NO_TEXT, "a TIFF image"},
    {MAGIC("MM\0*"), 0, false, NO_TEXT, "a TIFF image"},
    {MAGIC("\0\0\1\0"), 0, false, NO_TEXT, "an icon"},
    {MAGIC("8BPS\0"), 0, false, NO_TEXT, "a Photoshop image"},
    {MAGIC("ftyp"), 4, true, NO_TEXT, "an MP4 file (or HEIC, AVIF)"},
    {MAGIC("\x1A\x45\xDF\xA3"), 0, false, NO_TEXT, "a Matroska or WebM film"},
    {MAGIC("ID3"), 0, true, NO_TEXT, "an MP3 file"},
    {MAGIC("OggS\0"), 0, false, NO_TEXT, "an Ogg file"},
    {MAGIC("fLaC\0"), 0, false, NO_TEXT, "a FLAC file"},
    {MAGIC("FLV\x01"), 0, false, NO_TEXT, "a Flash film"},
    {MAGIC("\0\0\1\xBA"), 0, false, NO_TEXT, "an MPEG film"},
    {MAGIC("wOFF"), 0, true, NO_TEXT, "a font"},
    {MAGIC("wOF2"), 0, true, NO_TEXT, "a font"},
    {MAGIC("\0\1\0\0\0"), 0, false, NO_TEXT, "a font"},
    {MAGIC("OTTO\0"), 0, false, NO_TEXT, "a font"},
    {MAGIC("\x7F" "ELF"), 0, false, NO_TEXT, "an ELF program"},
    {MAGIC("MZ"), 0, true, NO_TEXT, "a Windows program"},
    {MAGIC("\xCF\xFA\xED\xFE"), 0, false, NO_TEXT, "a Mach-O program"},
    {MAGIC("\xCA\xFE\xBA\xBE"), 0, false, NO_TEXT, "a Java class or Mach-O program"},
    {MAGIC("\0asm"), 0, false, NO_TEXT, "a WebAssembly program"},
    {MAGIC("GGUF"), 0, true, NO_TEXT, "a model (GGUF)"},
};

bool file_kind_is_binary(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 32 && c != '\t' && c != '\n' && c != '\f' && c != '\r' && c != 27)
            return true;
    }
    return false;
}

/* The entry whose magic bytes stand there; NULL: none. */
static const struct kind *find(struct span s)
{
    if (s.n > FILE_KIND_BYTES)
        s.n = FILE_KIND_BYTES;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *k = &kinds[i];
        if (s.n >= (size_t)k->at + k->n && memcmp(s.p + k->at, k->magic, k->n) == 0 &&
            (!k->printable || file_kind_is_binary(s)))
            return k;
    }
    return NULL;
}

const char *file_kind(struct span start)
{
    const struct kind *k = find(start);

    return k && k->use != RECODE ? k->name : NULL;
}

int file_kind_refuse(const char *path, struct span start, struct err *e)
{
    const struct kind *k = find(start);

    return k ? err_set(e, ERR_FORMAT, "'%s' is %s: %s", path, k->name, advice[k->use]) : 0;
}

int file_kind_check(struct file_in *f, struct err *e)
{
    char start[FILE_KIND_BYTES];
    ssize_t n = file_codec(f) == FILE_PLAIN && file_size(f) ? file_read(f, start, sizeof start, e) : 0;

    return n < 0 ? (int)n : file_kind_refuse(file_name(f), (struct span){start, (size_t)n}, e);
}
