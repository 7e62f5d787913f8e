/* The tokens of JSON in UTF-8, for json_check.c and json_columns.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A call of each token costs a fifth of the check, and compilers do not inline these at -O2 by themselves. */
#if defined(__GNUC__)
#define HOT static inline __attribute__((always_inline))
#else
#define HOT static inline
#endif

/* Each skip_ function returns the place behind what it skips, or NULL if that is not there, or not surely valid. */

HOT const uint8_t *skip_spaces(const uint8_t *at, const uint8_t *end) {
  if (at == end || *at > ' ') return at; /* as nearly always */
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
  return at;
}

/* Skip ASCII that means only itself in a string: neither a quote, nor a backslash, nor a control character. */
HOT const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  /* Eight bytes at once. A subtraction borrows in each byte that is less than what is taken from it, and so sets its
     highest bit. A borrow may also mark bytes behind it, so only the first one that is marked is surely of interest. */
  const uint64_t each = 0x0101010101010101;
  while (end - at >= 8) {
    uint64_t bytes;
    memcpy(&bytes, at, 8);
    uint64_t quotes = (bytes ^ each * '"') - each, backslashes = (bytes ^ each * '\\') - each;
    uint64_t marked = (quotes | backslashes | (bytes - each * 0x20) | bytes) & each * 0x80;
    if (marked) return at + (__builtin_ctzll(marked) >> 3);
    at += 8;
  }
#endif
  while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\') at++;
  return at;
}

static int is_between(uint8_t byte, uint8_t lowest, uint8_t highest) { return byte >= lowest && byte <= highest; }

/* Skip a character of two to four bytes. Surrogates and longer forms than needed are not UTF-8. */
static const uint8_t *skip_character(const uint8_t *at, const uint8_t *end) {
  uint8_t first = at[0];
  ptrdiff_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (!is_between(first, 0xc2, 0xf4) || end - at < size) return NULL;
  uint8_t lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (!is_between(at[1], lowest, highest)) return NULL;
  for (ptrdiff_t i = 2; i < size; i++)
    if (!is_between(at[i], 0x80, 0xbf)) return NULL;
  return at + size;
}

enum { UNIT_SIZE = 6 };

/* Return the number of \uXXXX, -1 if it is not there. */
static int32_t read_unit(const uint8_t *at, const uint8_t *end) {
  if (end - at < UNIT_SIZE || at[0] != '\\' || at[1] != 'u') return -1;
  int32_t unit = 0;
  for (int i = 2; i < UNIT_SIZE; i++) {
    uint8_t digit = at[i], letter = digit | 0x20;
    if (is_between(digit, '0', '9')) unit = unit * 16 + digit - '0';
    else if (is_between(letter, 'a', 'f')) unit = unit * 16 + letter - 'a' + 10;
    else return -1;
  }
  return unit;
}

static const uint8_t *skip_escape(const uint8_t *at, const uint8_t *end) {
  if (end - at < 2) return NULL;
  switch (at[1]) {
  case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
    return at + 2;
  case 'u': {
    int32_t unit = read_unit(at, end);
    if (unit < 0) return NULL;
    if (unit < 0xd800 || unit > 0xdfff) return at + UNIT_SIZE;
    if (unit > 0xdbff) return NULL; /* the second half of a pair, alone */
    int32_t second = read_unit(at + UNIT_SIZE, end);
    return second >= 0xdc00 && second <= 0xdfff ? at + 2 * UNIT_SIZE : NULL;
  }
  default:
    return NULL;
  }
}

HOT const uint8_t *skip_string(const uint8_t *at, const uint8_t *end) {
  if (at == end || *at != '"') return NULL;
  at++;
  while (at) {
    at = skip_plain(at, end);
    if (at == end) return NULL;
    if (*at == '"') return at + 1;
    if (*at == '\\') at = skip_escape(at, end);
    else at = *at < 0x80 ? NULL : skip_character(at, end);
  }
  return NULL;
}

static const uint8_t *skip_word(const uint8_t *at, const uint8_t *end, const char *word) {
  size_t size = strlen(word);
  return (size_t)(end - at) >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}
