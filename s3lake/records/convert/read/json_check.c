/* Finds the values of an Arrow column that are surely one JSON value in UTF-8; json_check.py has the rest judged by
   msgspec, value by value, with the reason. So this may be stricter than msgspec, and must never be laxer.

   No header of Arrow or Python is needed, nothing is allocated, and no byte past the end of a value is read. */
#include "json_tokens.h"

/* msgspec refuses what is nested more deeply than Python's stack allows, which depends on who calls it. No such limit
   is as low as this one, which is the number of bits of `objects` below. */
enum { MOST_LEVELS = 64 };

static const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end) {
  const uint8_t *first = at;
  while (at < end && is_between(*at, '0', '9')) at++;
  return at == first ? NULL : at;
}

static const uint8_t *skip_number(const uint8_t *at, const uint8_t *end) {
  if (at < end && *at == '-') at++;
  if (at < end && *at == '0') at++; /* and no digit behind it */
  else at = skip_digits(at, end);
  if (at && at < end && *at == '.') at = skip_digits(at + 1, end);
  if (at && at < end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < end && (*at == '+' || *at == '-')) at++;
    at = skip_digits(at, end);
  }
  return at;
}

/* Skip a string, number, true, false or null. */
static const uint8_t *skip_scalar(const uint8_t *at, const uint8_t *end) {
  switch (*at) {
  case '"': return skip_string(at, end);
  case 't': return skip_word(at, end, "true");
  case 'f': return skip_word(at, end, "false");
  case 'n': return skip_word(at, end, "null");
  default: return skip_number(at, end);
  }
}

/* Skip the name of an object's member, and its colon. */
HOT const uint8_t *skip_name(const uint8_t *at, const uint8_t *end) {
  at = skip_string(skip_spaces(at, end), end);
  if (!at) return NULL;
  at = skip_spaces(at, end);
  return at < end && *at == ':' ? at + 1 : NULL;
}

/* Return whether this is surely one JSON value, with spaces around it at most. */
static int is_json(const uint8_t *at, const uint8_t *end) {
  uint64_t objects = 0; /* a bit for each level around `at`, the innermost lowest: 1 for an object, 0 for an array */
  int levels = 0;
  for (;;) {
    at = skip_spaces(at, end);
    if (at == end) return 0;
    if (*at == '{' || *at == '[') {
      if (levels == MOST_LEVELS) return 0;
      levels++;
      objects = objects << 1 | (*at == '{');
      at = skip_spaces(at + 1, end);
      if (at == end) return 0;
      if (*at != (objects & 1 ? '}' : ']')) { /* not empty, so a value comes next */
        if (objects & 1 && !(at = skip_name(at, end))) return 0;
        continue;
      }
    } else if (!(at = skip_scalar(at, end))) {
      return 0;
    }
    for (;;) { /* behind a value, or at the end of an empty object or array */
      at = skip_spaces(at, end);
      if (levels == 0) return at == end;
      if (at == end) return 0;
      if (*at == ',') break;
      if (*at != (objects & 1 ? '}' : ']')) return 0;
      at++;
      levels--;
      objects >>= 1;
    }
    at++;
    if (objects & 1 && !(at = skip_name(at, end))) return 0;
  }
}

/* Write the rows that are not surely JSON to `rows`, which has room for all, and return how many there are.

   `data`, `offsets` and `valid` are the buffers of a binary column, of which `count` rows from `first` on are looked
   at. Rows count from `first`. `valid` is NULL if no row is null; a null row is fine. */
int64_t find_doubtful_json(const uint8_t *data, const int32_t *offsets, const uint8_t *valid, int64_t first,
                           int64_t count, int64_t *rows) {
  int64_t doubtful = 0;
  for (int64_t row = 0; row < count; row++) {
    int64_t at = first + row;
    if (valid && !(valid[at >> 3] >> (at & 7) & 1)) continue;
    if (!is_json(data + offsets[at], data + offsets[at + 1])) rows[doubtful++] = row;
  }
  return doubtful;
}

typedef struct {
  const uint8_t *at;
  ptrdiff_t size;
} Name;

/* The names of the objects around a place, all together. Each is compared with the others of its object. */
enum { MOST_NAMES = 512 };

/* Return whether surely no object of this JSON value has two members of one name. */
static int has_distinct_names(const uint8_t *at, const uint8_t *end) {
  Name names[MOST_NAMES];
  int count = 0, levels = 0, firsts[MOST_LEVELS]; /* of each level the place of its first name, -1 for an array */
  while (at && at < end) {
    switch (*at) {
    case '{':
    case '[':
      if (levels == MOST_LEVELS) return 0;
      firsts[levels++] = *at == '{' ? count : -1;
      at++;
      break;
    case '}':
    case ']':
      if (levels == 0) return 0;
      if (firsts[--levels] >= 0) count = firsts[levels];
      at++;
      break;
    case '"': {
      const uint8_t *first = at + 1;
      at = skip_string(at, end);
      if (!at) return 0;
      ptrdiff_t size = at - first - 1;
      at = skip_spaces(at, end);
      if (at == end || *at != ':') break; /* a value */
      if (levels == 0 || firsts[levels - 1] < 0 || count == MOST_NAMES) return 0;
      if (memchr(first, '\\', size)) return 0; /* other bytes may be the same name */
      for (int i = firsts[levels - 1]; i < count; i++)
        if (names[i].size == size && memcmp(names[i].at, first, size) == 0) return 0;
      names[count].at = first;
      names[count++].size = size;
      break;
    }
    default: at++;
    }
  }
  return at != NULL;
}

/* Write the rows of JSON of which an object may have two members of one name to `rows`; as `find_doubtful_json`. */
int64_t find_doubtful_names(const uint8_t *data, const int32_t *offsets, const uint8_t *valid, int64_t first,
                            int64_t count, int64_t *rows) {
  int64_t doubtful = 0;
  for (int64_t row = 0; row < count; row++) {
    int64_t at = first + row;
    if (valid && !(valid[at >> 3] >> (at & 7) & 1)) continue;
    if (!has_distinct_names(data + offsets[at], data + offsets[at + 1])) rows[doubtful++] = row;
  }
  return doubtful;
}
