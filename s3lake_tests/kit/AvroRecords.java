import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.SeekableByteArrayInput;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Reads a request a line, `avro_records.py` writes them, and answers a line each: what Apache Avro reads of a datum, or
 * of a container file. A value is shown without its logical types: bytes as text of ISO 8859-1, floats as their bits.
 *
 * Janino, which Spark ships, compiles it: no generics, no lambdas.
 */
public final class AvroRecords {
    private final ObjectMapper json = new ObjectMapper();

    /** Answers each line of the requests. */
    public String answer(String requests) throws Exception {
        StringBuilder answers = new StringBuilder();
        String[] lines = requests.split("\n");
        for (int at = 0; at < lines.length; at++) {
            ObjectNode answer = json.createObjectNode();
            try {
                JsonNode request = json.readTree(lines[at]);
                if (request.has("file")) {
                    readFile(request, answer);
                } else {
                    readDatum(request, answer);
                }
            } catch (Throwable thrown) {
                answer = json.createObjectNode();
                answer.put("refused", thrown.toString());
            }
            answers.append(json.writeValueAsString(answer)).append('\n');
        }
        return answers.toString();
    }

    /** Shows a datum, and writes it again: in one block, or in small ones that say their size. */
    private void readDatum(JsonNode request, ObjectNode answer) throws Exception {
        Schema schema = new Schema.Parser().parse(request.get("schema").asText());
        byte[] data = request.get("datum").asText().getBytes(StandardCharsets.ISO_8859_1);
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(data, null);
        Object value = new GenericDatumReader(schema).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IllegalArgumentException("bytes are left");
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        EncoderFactory factory = new EncoderFactory();
        factory.configureBlockSize(64);
        boolean isBlocking = request.get("blocks").asBoolean();
        BinaryEncoder encoder = isBlocking ? factory.blockingBinaryEncoder(out, null) : factory.binaryEncoder(out, null);
        new GenericDatumWriter(schema).write(value, encoder);
        encoder.flush();
        answer.set("value", show(schema, value));
        answer.put("datum", new String(out.toByteArray(), StandardCharsets.ISO_8859_1));
    }

    /** Shows a file's rows, and says whether its schema equals the expected one, if that is given. */
    private void readFile(JsonNode request, ObjectNode answer) throws Exception {
        byte[] file = request.get("file").asText().getBytes(StandardCharsets.ISO_8859_1);
        DataFileReader reader = new DataFileReader(new SeekableByteArrayInput(file), new GenericDatumReader());
        ArrayNode rows = answer.putArray("rows");
        Schema schema = reader.getSchema();
        while (reader.hasNext()) {
            rows.add(show(schema, reader.next()));
        }
        answer.put("schema", schema.toString());
        if (request.has("expected")) {
            answer.put("equal", schema.equals(new Schema.Parser().parse(request.get("expected").asText())));
        }
    }

    private JsonNode show(Schema schema, Object value) {
        Schema.Type type = schema.getType();
        if (type == Schema.Type.UNION) {
            ObjectNode shown = json.createObjectNode();
            int branch = GenericData.get().resolveUnion(schema, value);
            shown.put("branch", branch);
            shown.set("value", show((Schema) schema.getTypes().get(branch), value));
            return shown;
        }
        if (type == Schema.Type.RECORD) {
            ObjectNode shown = json.createObjectNode();
            for (int at = 0; at < schema.getFields().size(); at++) {
                Schema.Field field = (Schema.Field) schema.getFields().get(at);
                shown.set(field.name(), show(field.schema(), ((IndexedRecord) value).get(at)));
            }
            return shown;
        }
        if (type == Schema.Type.ARRAY) {
            ArrayNode shown = json.createArrayNode();
            for (Iterator items = ((List) value).iterator(); items.hasNext();) {
                shown.add(show(schema.getElementType(), items.next()));
            }
            return shown;
        }
        if (type == Schema.Type.MAP) {
            ObjectNode shown = json.createObjectNode();
            for (Iterator entries = ((Map) value).entrySet().iterator(); entries.hasNext();) {
                Map.Entry entry = (Map.Entry) entries.next();
                shown.set(entry.getKey().toString(), show(schema.getValueType(), entry.getValue()));
            }
            return shown;
        }
        if (type == Schema.Type.BYTES) {
            ByteBuffer buffer = (ByteBuffer) value;
            byte[] bytes = new byte[buffer.remaining()];
            System.arraycopy(buffer.array(), buffer.arrayOffset() + buffer.position(), bytes, 0, bytes.length);
            return json.getNodeFactory().textNode(new String(bytes, StandardCharsets.ISO_8859_1));
        }
        if (type == Schema.Type.FIXED) {
            byte[] bytes = ((GenericFixed) value).bytes();
            return json.getNodeFactory().textNode(new String(bytes, StandardCharsets.ISO_8859_1));
        }
        if (type == Schema.Type.NULL) {
            return json.getNodeFactory().nullNode();
        }
        if (type == Schema.Type.BOOLEAN) {
            return json.getNodeFactory().booleanNode(((Boolean) value).booleanValue());
        }
        if (type == Schema.Type.FLOAT) {
            return json.getNodeFactory().numberNode(Float.floatToRawIntBits(((Float) value).floatValue()));
        }
        if (type == Schema.Type.DOUBLE) {
            return json.getNodeFactory().numberNode(Double.doubleToRawLongBits(((Double) value).doubleValue()));
        }
        if (type == Schema.Type.INT || type == Schema.Type.LONG) {
            return json.getNodeFactory().numberNode(((Number) value).longValue());
        }
        return json.getNodeFactory().textNode(value.toString());
    }
}
