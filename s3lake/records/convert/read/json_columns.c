/* Reads JSON objects of an Arrow column into the buffers of other columns; compiled_columns.py allocates them.

   It reads a value only if that is surely one JSON object in UTF-8 of which each member has a column, and fits it
   exactly. At the first one that is not, it gives up, and Arrow's reader, or msgspec, has the whole batch.

   No header of Arrow or Python is needed, nothing is allocated, and no byte past the end of a value is read. */
#include "json_tokens.h"

enum { ALWAYS_NULL, BOOLEAN, INTEGER, DOUBLE, TEXT, STRUCT };

/* A column, or the member of a struct, all of which have as many rows. compiled_columns.py has the same struct. */
typedef struct {
  const uint8_t *name; /* as JSON has it, without its quotes */
  uint8_t *valid;      /* a bitmap */
  uint8_t *bits;       /* booleans, a bitmap */
  int64_t *integers;
  double *doubles;
  int32_t *offsets; /* of texts: one more than there are rows */
  int32_t *places;  /* of texts: where each begins; of doubles: row, beginning and end of those in `unread` */
  int64_t name_size;
  int64_t present; /* rows that are not null */
  int64_t size;    /* bytes of all texts */
  int64_t unread;  /* doubles that are left to Arrow's parser of numbers */
  int64_t row;     /* the last one that has this member; -1 at first */
  int32_t code;
  int32_t first; /* of a struct: its members are columns next to each other */
  int32_t count;
} Column;

const int64_t struct_sizes[] = {sizeof(Column)};

typedef struct {
  Column *columns;
  const uint8_t *data;
  const uint8_t *end; /* of the value */
  int64_t row;
} Reading;

typedef struct {
  uint64_t digits; /* without the point */
  int significant; /* how many there are without leading zeros; above MOST_DIGITS they are not all in `digits` */
  int exponent;    /* of ten */
  int is_negative;
  int is_integer; /* written without point and exponent */
} Number;

enum { MOST_DIGITS = 19, MOST_EXPONENT = 22, LONGEST_DOUBLE = 40 };

static const uint64_t LARGE = (uint64_t)1 << 53; /* all integers up to here are doubles */
static const double POWERS[MOST_EXPONENT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

HOT int is_digit(const uint8_t *at, const uint8_t *end) { return at < end && (uint8_t)(*at - '0') < 10; }

HOT const uint8_t *read_digits(const uint8_t *at, const uint8_t *end, Number *number) {
  const uint8_t *first = at;
  for (; is_digit(at, end); at++) {
    number->digits = number->digits * 10 + (*at - '0'); /* unsigned, so too many of them only come out wrong */
    number->significant += number->significant || *at != '0';
  }
  return at == first ? NULL : at;
}

/* Each read_ function returns the place behind what it reads, or NULL if it is not surely what the column holds. */

HOT const uint8_t *read_number(const uint8_t *at, const uint8_t *end, Number *number) {
  *number = (Number){0, 0, 0, *at == '-', 1};
  at += number->is_negative;
  if (at < end && *at == '0') at++; /* and no digit behind it */
  else if (!(at = read_digits(at, end, number))) return NULL;
  if (at < end && *at == '.') {
    const uint8_t *first = at + 1;
    if (!(at = read_digits(first, end, number))) return NULL;
    number->exponent = (int)(first - at);
    number->is_integer = 0;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    int is_negative = ++at < end && *at == '-', exponent = 0;
    if (at < end && (*at == '+' || *at == '-')) at++;
    if (!is_digit(at, end)) return NULL;
    for (int digits = 0; is_digit(at, end); at++, digits++) {
      if (digits == 3) return NULL; /* surely beyond a double */
      exponent = exponent * 10 + (*at - '0');
    }
    number->exponent += is_negative ? -exponent : exponent;
    number->is_integer = 0;
  }
  return at;
}

static const uint8_t *read_integer(const Reading *reading, Column *column, const uint8_t *at) {
  Number number;
  if (!(at = read_number(at, reading->end, &number)) || !number.is_integer) return NULL;
  /* The lowest integer of 64 bits is one further from zero than the highest; it is left to others. */
  if (number.significant > MOST_DIGITS || number.digits > INT64_MAX) return NULL;
  column->integers[reading->row] = number.is_negative ? -(int64_t)number.digits : (int64_t)number.digits;
  return at;
}

static const uint8_t *read_double(const Reading *reading, Column *column, const uint8_t *at) {
  Number number;
  const uint8_t *first = at;
  if (!(at = read_number(at, reading->end, &number))) return NULL;
  int exponent = number.exponent;
  if (number.significant > MOST_DIGITS || number.digits > LARGE || exponent > MOST_EXPONENT ||
      exponent < -MOST_EXPONENT) {
    if (at - first > LONGEST_DOUBLE) return NULL;
    int32_t *place = column->places + 3 * column->unread++;
    place[0] = (int32_t)reading->row;
    place[1] = (int32_t)(first - reading->data);
    place[2] = (int32_t)(at - reading->data);
    return at;
  }
  /* Both are doubles exactly, so that one operation rounds as IEEE 754 asks for, and as every right parser does. */
  double value = (double)number.digits;
  value = exponent < 0 ? value / POWERS[-exponent] : value * POWERS[exponent];
  if (value >= (double)LARGE) return NULL; /* perhaps an integer that is rounded */
  column->doubles[reading->row] = number.is_negative ? -value : value;
  return at;
}

/* Return how many bytes an escape that skip_escape has skipped means, up to `end`; 0 for a zero byte. */
static int measure_escape(const uint8_t *at, const uint8_t *end) {
  if (at[1] != 'u') return 1;
  if (end - at > UNIT_SIZE) return 4;
  int32_t unit = read_unit(at, end);
  return unit == 0 ? 0 : unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
}

HOT const uint8_t *read_text(const Reading *reading, Column *column, const uint8_t *at) {
  const uint8_t *end = reading->end, *first = at;
  int32_t saved = 0;
  for (;;) {
    at = skip_plain(at, end);
    if (at == end) return NULL;
    if (*at == '"') break;
    if (*at == '\\') {
      const uint8_t *behind = skip_escape(at, end);
      int size = behind ? measure_escape(at, behind) : 0;
      if (!size) return NULL;
      saved += (int32_t)(behind - at) - size;
      at = behind;
    } else if (*at < 0x80 || !(at = skip_character(at, end))) {
      return NULL;
    }
  }
  int32_t size = (int32_t)(at - first) - saved, place = (int32_t)(first - reading->data);
  column->offsets[reading->row + 1] = size;
  column->places[reading->row] = saved ? ~place : place; /* negative if it has escapes */
  column->size += size;
  return at + 1;
}

static const uint8_t *read_boolean(const Reading *reading, Column *column, const uint8_t *at) {
  if (*at != 't') return skip_word(at, reading->end, "false");
  column->bits[reading->row >> 3] |= (uint8_t)(1 << (reading->row & 7));
  return skip_word(at, reading->end, "true");
}

static const uint8_t *read_members(const Reading *reading, Column *members, int32_t count, const uint8_t *at);

/* `at` is before the end of the value. */
HOT const uint8_t *read_value(const Reading *reading, Column *column, const uint8_t *at) {
  if (*at == 'n') return skip_word(at, reading->end, "null");
  switch (column->code) {
  case BOOLEAN: at = read_boolean(reading, column, at); break;
  case INTEGER: at = read_integer(reading, column, at); break;
  case DOUBLE: at = read_double(reading, column, at); break;
  case TEXT: at = *at == '"' ? read_text(reading, column, at + 1) : NULL; break;
  case STRUCT:
    at = *at == '{' ? read_members(reading, reading->columns + column->first, column->count, at + 1) : NULL;
    break;
  default: return NULL;
  }
  column->valid[reading->row >> 3] |= (uint8_t)(1 << (reading->row & 7));
  column->present++;
  return at;
}

/* Read an object whose brace is before `at`. */
static const uint8_t *read_members(const Reading *reading, Column *members, int32_t count, const uint8_t *at) {
  const uint8_t *end = reading->end;
  int32_t next = 0;
  at = skip_spaces(at, end);
  if (at < end && *at == '}') return at + 1;
  for (;;) {
    at = skip_spaces(at, end);
    if (at == end || *at != '"') return NULL;
    at++;
    Column *column = NULL;
    for (int32_t tried = 0; tried < count && !column; tried++) { /* mostly they are in order */
      Column *member = members + next;
      if (++next == count) next = 0;
      /* No name of a column has a quote or a backslash, so a name that is written otherwise has none. */
      if (end - at > member->name_size && at[member->name_size] == '"' &&
          memcmp(at, member->name, (size_t)member->name_size) == 0)
        column = member;
    }
    if (!column || column->row == reading->row) return NULL; /* no column, or a name twice */
    column->row = reading->row;
    at = skip_spaces(at + column->name_size + 1, end);
    if (at == end || *at != ':') return NULL;
    at = skip_spaces(at + 1, end);
    if (at == end || !(at = read_value(reading, column, at))) return NULL;
    at = skip_spaces(at, end);
    if (at == end) return NULL;
    if (*at == '}') return at + 1;
    if (*at != ',') return NULL;
    at++;
  }
}

/* Read `count` rows of a binary column, from `first` on, none of which is null. The first `members` of the columns
   are those of the objects. Return whether all could be read: 0 if it gave up, and nothing may be used. */
int32_t read_columns(Column *columns, int32_t total, int32_t members, const uint8_t *data, const int32_t *offsets,
                     int64_t first, int64_t count) {
  for (Column *column = columns; column < columns + total; column++) {
    if (column->valid) memset(column->valid, 0, (size_t)(count + 7) / 8);
    if (column->bits) memset(column->bits, 0, (size_t)(count + 7) / 8);
    if (column->offsets) memset(column->offsets, 0, (size_t)(count + 1) * sizeof(int32_t));
    if (column->integers) memset(column->integers, 0, (size_t)count * sizeof(int64_t));
    if (column->doubles) memset(column->doubles, 0, (size_t)count * sizeof(double));
    column->present = column->size = column->unread = 0;
    column->row = -1;
  }
  for (int64_t row = 0; row < count; row++) {
    const uint8_t *at = data + offsets[first + row];
    Reading reading = {columns, data, data + offsets[first + row + 1], row};
    at = skip_spaces(at, reading.end);
    if (at == reading.end || *at != '{') return 0;
    at = read_members(&reading, columns, members, at + 1);
    if (!at || skip_spaces(at, reading.end) != reading.end) return 0;
  }
  return 1;
}

/* Write a character in UTF-8. */
static uint8_t *write_character(uint8_t *to, int32_t character) {
  if (character < 0x80) {
    *to++ = (uint8_t)character;
    return to;
  }
  if (character < 0x800) {
    *to++ = (uint8_t)(0xc0 | character >> 6);
  } else {
    if (character < 0x10000) {
      *to++ = (uint8_t)(0xe0 | character >> 12);
    } else {
      *to++ = (uint8_t)(0xf0 | character >> 18);
      *to++ = (uint8_t)(0x80 | (character >> 12 & 0x3f));
    }
    *to++ = (uint8_t)(0x80 | (character >> 6 & 0x3f));
  }
  *to++ = (uint8_t)(0x80 | (character & 0x3f));
  return to;
}

/* Write what the text at `at`, which read_text has read, means. */
static void write_unescaped(uint8_t *to, const uint8_t *at) {
  for (; *at != '"'; at++) {
    if (*at != '\\') {
      *to++ = *at;
      continue;
    }
    at++;
    switch (*at) {
    case 'b': *to++ = '\b'; break;
    case 'f': *to++ = '\f'; break;
    case 'n': *to++ = '\n'; break;
    case 'r': *to++ = '\r'; break;
    case 't': *to++ = '\t'; break;
    case 'u': {
      int32_t unit = read_unit(at - 1, at - 1 + UNIT_SIZE);
      at += UNIT_SIZE - 2;
      if (unit >= 0xd800 && unit <= 0xdbff) {
        int32_t second = read_unit(at + 1, at + 1 + UNIT_SIZE);
        unit = 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
        at += UNIT_SIZE;
      }
      to = write_character(to, unit);
      break;
    }
    default: *to++ = *at; /* a quote, a slash, a backslash */
    }
  }
}

/* Copy the texts of a column that read_columns has read to `texts`, which has room for its `size`. */
void copy_texts(Column *column, const uint8_t *data, int64_t count, uint8_t *texts) {
  int32_t *offsets = column->offsets;
  for (int64_t row = 0; row < count; row++) {
    int32_t size = offsets[row + 1], place = column->places[row];
    offsets[row + 1] = offsets[row] + size;
    if (!size) continue;
    if (place < 0) write_unescaped(texts + offsets[row], data + ~place);
    else memcpy(texts + offsets[row], data + place, (size_t)size);
  }
}
