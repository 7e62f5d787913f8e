/* What floor.py needs of C: the values of librdkafka's messages, one behind another, in a buffer for each partition. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* rd_kafka_message_t, as librdkafka's public header has it. */
typedef struct {
    int32_t error;
    void *topic;
    int32_t partition;
    void *value;
    size_t length;
    void *key;
    size_t key_length;
    int64_t offset;
    void *opaque;
} message;

extern ssize_t rd_kafka_consume_batch_queue(void *queue, int timeout_ms, message **messages, size_t most);
extern void rd_kafka_message_destroy(message *one);

typedef struct {
    uint8_t *data;
    int64_t size, capacity, rows, first_offset, ended;
} buffer;

enum { MOST = 10000, END_OF_PARTITION = -191 };

static message *messages[MOST];
static ssize_t count, next;

/* Adds a value to a buffer, without its first `skip` bytes, and with a newline after it if that is asked. */
static int add(buffer *into, const message *one, size_t skip, int newline)
{
    int64_t needed = into->size + (int64_t)one->length + 1;
    if (needed > into->capacity) {
        uint8_t *larger = realloc(into->data, (size_t)needed * 2);
        if (!larger)
            return 0;
        into->data = larger;
        into->capacity = needed * 2;
    }
    if (!into->rows++)
        into->first_offset = one->offset;
    memcpy(into->data + into->size, (uint8_t *)one->value + skip, one->length - skip);
    into->size += (int64_t)(one->length - skip);
    if (newline)
        into->data[into->size++] = '\n';
    return 1;
}

/* Reads until the buffer of a partition has `most` rows, or its partition ends, and returns that partition's number.
   Returns -1 if nothing came within a second, -2 if there is no memory, -3 for an error of Kafka. */
int fill(void *queue, buffer *buffers, int64_t most, size_t skip, int newline)
{
    for (;;) {
        while (next < count) {
            message *one = messages[next++];
            int32_t partition = one->partition;
            int error = one->error, added = !error && add(&buffers[partition], one, skip, newline);
            rd_kafka_message_destroy(one);
            if (error == END_OF_PARTITION) {
                buffers[partition].ended = 1;
                return partition;
            }
            if (error)
                return -3;
            if (!added)
                return -2;
            if (buffers[partition].rows == most)
                return partition;
        }
        next = 0;
        count = rd_kafka_consume_batch_queue(queue, 1000, messages, MOST);
        if (count <= 0) {
            count = 0;
            return -1;
        }
    }
}
