import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Reads a request a line, `connect_records.py` writes them, and answers a line each: what JsonConverter reads of a
 * record, behind a chain of transforms, written by JsonConverter. A value never leaves Java as anything but this text.
 *
 * Janino, which Spark ships, compiles it: no generics, no lambdas.
 */
public final class ConnectRecords {
    private static final String TRANSFORMS = "org.apache.kafka.connect.transforms.";
    private final ObjectMapper json = new ObjectMapper();
    private final Map made = new HashMap();

    /** Answers each line of the requests. */
    public String answer(String requests) throws Exception {
        StringBuilder answers = new StringBuilder();
        String[] lines = requests.split("\n");
        for (int at = 0; at < lines.length; at++) {
            ObjectNode answer;
            try {
                answer = answerOne(json.readTree(lines[at]));
            } catch (Exception thrown) {
                answer = json.createObjectNode();
                answer.put("refused", thrown.toString());
            }
            answers.append(json.writeValueAsString(answer)).append('\n');
        }
        return answers.toString();
    }

    private ObjectNode answerOne(JsonNode request) throws Exception {
        ObjectNode answer = json.createObjectNode();
        ConnectRecord record = read(request);
        for (Iterator steps = request.get("chain").elements(); steps.hasNext();) {
            JsonNode step = (JsonNode) steps.next();
            record = transform(step).apply(record);
            if (record == null) {
                answer.put("dropped", true);
                return answer;
            }
        }
        JsonConverter writer = converter(request.get("writer"));
        answer.put("value", write(writer, record.valueSchema(), record.value()));
        answer.put("key", write(writer, record.keySchema(), record.key()));
        ArrayNode headers = answer.putArray("headers");
        for (Iterator all = record.headers().iterator(); all.hasNext();) {
            Header header = (Header) all.next();
            ObjectNode written = headers.addObject();
            written.put("name", header.key());
            written.put("value", write(writer, header.schema(), header.value()));
        }
        answer.put("topic", record.topic());
        answer.put("partition", record.kafkaPartition());
        answer.put("timestamp", record.timestamp());
        return answer;
    }

    private ConnectRecord read(JsonNode request) {
        SchemaAndValue value = read(converter(request.get("reader")), request.get("value"));
        SchemaAndValue key = read(converter(request.get("key_reader")), request.get("key"));
        ConnectHeaders headers = new ConnectHeaders();
        for (Iterator all = request.get("headers").elements(); all.hasNext();) {
            JsonNode header = (JsonNode) all.next();
            headers.add(header.get("name").asText(), read(converter(request.get("reader")), header.get("value")));
        }
        return new SinkRecord(
            request.get("topic").asText(), request.get("partition").asInt(), key.schema(), key.value(), value.schema(),
            value.value(), request.get("offset").asLong(), Long.valueOf(request.get("timestamp").asLong()),
            TimestampType.CREATE_TIME, headers);
    }

    private SchemaAndValue read(JsonConverter converter, JsonNode text) {
        return converter.toConnectData("t", text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8));
    }

    private String write(JsonConverter converter, Schema schema, Object value) {
        byte[] text = converter.fromConnectData("t", schema, value);
        return text == null ? null : new String(text, StandardCharsets.UTF_8);
    }

    private JsonConverter converter(JsonNode options) {
        JsonConverter converter = (JsonConverter) made.get(options);
        if (converter == null) {
            converter = new JsonConverter();
            converter.configure(asMap(options), false);
            made.put(options, converter);
        }
        return converter;
    }

    private Transformation transform(JsonNode step) throws Exception {
        Transformation transform = (Transformation) made.get(step);
        if (transform == null) {
            String name = step.get("class").asText();
            name = name.indexOf('.') < 0 ? TRANSFORMS + name : name;
            transform = (Transformation) Class.forName(name).getConstructor(new Class[0]).newInstance(new Object[0]);
            ((Configurable) transform).configure(asMap(step.get("options")));
            made.put(step, transform);
        }
        return transform;
    }

    private Map asMap(JsonNode options) {
        Map map = new HashMap();
        for (Iterator names = options.fieldNames(); names.hasNext();) {
            String name = (String) names.next();
            map.put(name, options.get(name).asText());
        }
        return map;
    }
}
