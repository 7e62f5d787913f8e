/* Copies messages of librdkafka into the buffers of Arrow columns; columns.py does the same in a loop of Python.

   No header of librdkafka, Arrow or Python is needed: `message` is rd_kafka_message_t of librdkafka's public ABI, and
   librdkafka's functions come as pointers. Nothing is allocated here: the caller measures, allocates, and fills. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  int32_t error;
  void *topic;
  int32_t partition;
  const char *value;
  size_t value_size;
  const char *key;
  size_t key_size;
  int64_t offset;
  void *private_data;
} message;

typedef struct {
  int64_t (*timestamp)(const message *, void *kind);
  int32_t (*headers)(const message *, void **headers);
  int32_t (*header_at)(const void *headers, size_t position, const char **name, const void **value, size_t *size);
  void (*destroy)(message *);
} functions;

/* What the next batch takes of the messages. All but `next_offset` count: messages, rows, headers, else bytes. */
typedef struct {
  int64_t messages, rows, next_offset, values, keys, headers, names, header_values;
} batch;

/* One column: Arrow's bitmap, offsets and data, and how many rows are filled. */
typedef struct {
  uint8_t *valid;
  int32_t *offsets;
  char *data;
  int64_t rows;
} column;

/* The columns of a batch; one that is not wanted has no data. Each row of `headers` is a list of names and values. */
typedef struct {
  column offset, timestamp, value, key, headers, names, header_values;
} columns;

enum { END_OF_LOG = -191 };


/* The sizes of the structs, which columns.py compares with its own. */
const int64_t struct_sizes[] = {sizeof(message), sizeof(functions), sizeof(batch), sizeof(columns)};

static int64_t max(int64_t one, int64_t other) { return one > other ? one : other; }

/* Count what fits into a batch: up to the first error, or `most_bytes`, but one record at least. */
void measure(message **messages, int64_t count, int64_t end, int64_t most_bytes, int with_headers, const functions *f,
             batch *b) {
  for (; b->messages < count; b->messages++) {
    const message *m = messages[b->messages];
    if (m->error == END_OF_LOG) {
      b->next_offset = max(b->next_offset, m->offset);
    } else if (m->error) {
      return;
    } else {
      if (m->offset < end) { /* behind a gap at the end of the range come records of the next one */
        batch larger = *b;
        void *headers;
        larger.rows++;
        larger.values += (int64_t)m->value_size;
        larger.keys += (int64_t)m->key_size;
        if (with_headers && f->headers(m, &headers) == 0) {
          const char *name;
          const void *value;
          size_t size;
          for (size_t at = 0; f->header_at(headers, at, &name, &value, &size) == 0; at++) {
            larger.headers++;
            larger.names += (int64_t)strlen(name);
            larger.header_values += value ? (int64_t)size : 0;
          }
        }
        if (b->rows && larger.values + larger.keys + larger.names + larger.header_values > most_bytes) return;
        *b = larger;
      }
      b->next_offset = max(b->next_offset, m->offset + 1);
    }
  }
}

static void clear(column *c, int64_t rows) {
  if (!c->data) return;
  memset(c->valid, 0, (size_t)(rows + 7) / 8);
  c->offsets[0] = 0;
}

static void add_number(column *c, int64_t number) { ((int64_t *)c->data)[c->rows++] = number; }

/* Add a row that ends at `end`. */
static void add(column *c, int is_valid, int64_t end) {
  if (is_valid) c->valid[c->rows >> 3] |= (uint8_t)(1 << (c->rows & 7));
  c->offsets[++c->rows] = (int32_t)end;
}

static void add_bytes(column *c, const void *bytes, size_t size) {
  int64_t at = c->offsets[c->rows];
  if (bytes) memcpy(c->data + at, bytes, size);
  add(c, bytes != NULL, bytes ? at + (int64_t)size : at);
}

/* Fill the columns with the rows of the batch that was measured, and destroy its messages. */
void fill_columns(message **messages, int64_t end, const functions *f, const batch *b, columns *c) {
  clear(&c->value, b->rows);
  clear(&c->key, b->rows);
  clear(&c->headers, b->rows);
  clear(&c->names, b->headers);
  clear(&c->header_values, b->headers);
  for (int64_t i = 0; i < b->messages; i++) {
    message *m = messages[i];
    if (m->error == 0 && m->offset < end) {
      if (c->offset.data) add_number(&c->offset, m->offset);
      if (c->timestamp.data) add_number(&c->timestamp, f->timestamp(m, NULL));
      if (c->value.data) add_bytes(&c->value, m->value, m->value_size);
      if (c->key.data) add_bytes(&c->key, m->key, m->key_size);
      if (c->headers.data) {
        void *headers;
        int has_headers = f->headers(m, &headers) == 0;
        if (has_headers) {
          const char *name;
          const void *value;
          size_t size;
          for (size_t at = 0; f->header_at(headers, at, &name, &value, &size) == 0; at++) {
            add_bytes(&c->names, name, strlen(name));
            add_bytes(&c->header_values, value, size);
          }
        }
        add(&c->headers, has_headers, c->names.rows);
      }
    }
    f->destroy(m);
  }
}
