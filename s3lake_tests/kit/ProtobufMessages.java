import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Makes random messages of a descriptor set, `protobuf_messages.py` gives it, and prints them as JSON.
 *
 * Janino, which Spark ships, compiles it: no generics, no lambdas.
 */
public final class ProtobufMessages {
    private static final String[] TEXTS = {"", "a", "NaN", "1", "\u00e9\"\\\u0001", "\u65e5\u672c", "{\"b\": 1, \"a\": 2}"};
    private Random random;

    /** Returns lines of base64 of a message and its JSON, or the reason why it has none, with a blank between. */
    public String make(String set, String name, long seed, int count) throws Exception {
        random = new Random(seed);
        Descriptor type = find(set, name);
        StringBuilder lines = new StringBuilder();
        for (int number = 0; number < count; number++) {
            Message message = message(type, 0);
            String text;
            try {
                text = JsonFormat.printer().alwaysPrintFieldsWithNoPresence().preservingProtoFieldNames()
                    .omittingInsignificantWhitespace().print(message);
            } catch (Exception thrown) {
                text = "refused " + thrown;
            }
            lines.append(Base64.getEncoder().encodeToString(message.toByteArray())).append(' ');
            lines.append(text.replace('\n', ' ')).append('\n');
        }
        return lines.toString();
    }

    private Descriptor find(String set, String name) throws Exception {
        FileDescriptorSet files = FileDescriptorSet.parseFrom(Base64.getDecoder().decode(set));
        Map built = new HashMap();
        FileDescriptor last = null;
        for (int at = 0; at < files.getFileCount(); at++) {
            FileDescriptorProto file = files.getFile(at);
            FileDescriptor[] needed = new FileDescriptor[file.getDependencyCount()];
            for (int each = 0; each < needed.length; each++) {
                needed[each] = (FileDescriptor) built.get(file.getDependency(each));
            }
            last = FileDescriptor.buildFrom(file, needed);
            built.put(file.getName(), last);
        }
        return last.findMessageTypeByName(name);
    }

    private Message message(Descriptor type, int level) {
        DynamicMessage.Builder builder = DynamicMessage.newBuilder(type);
        if (wellKnown(type, builder, level)) {
            return builder.build();
        }
        List fields = type.getFields();
        for (int at = 0; at < fields.size(); at++) {
            FieldDescriptor field = (FieldDescriptor) fields.get(at);
            if (field.isMapField()) {
                map(builder, field, level);
            } else if (field.isRepeated()) {
                for (int left = random.nextInt(4); left > 0; left--) {
                    builder.addRepeatedField(field, value(field, level));
                }
            } else if (random.nextInt(10) < 7) {
                builder.setField(field, value(field, level));
            }
        }
        return builder.build();
    }

    private void map(DynamicMessage.Builder builder, FieldDescriptor field, int level) {
        Descriptor entry = field.getMessageType();
        FieldDescriptor key = entry.findFieldByNumber(1);
        Map keys = new HashMap();
        for (int left = random.nextInt(5); left > 0; left--) {
            Object name = value(key, level);
            if (keys.put(name, name) == null) {
                DynamicMessage.Builder pair = DynamicMessage.newBuilder(entry);
                pair.setField(key, name);
                pair.setField(entry.findFieldByNumber(2), value(entry.findFieldByNumber(2), level));
                builder.addRepeatedField(field, pair.build());
            }
        }
    }

    private boolean wellKnown(Descriptor type, DynamicMessage.Builder builder, int level) {
        String name = type.getFullName();
        if (name.equals("google.protobuf.Timestamp")) {
            long[] seconds = {0L, -1L, -62135596800L, 253402300799L, 1795162500L, random.nextInt()};
            long[] nanos = {0L, 1L, 999999999L, 123000000L, 123456789L};
            return set(builder, seconds[random.nextInt(6)], nanos[random.nextInt(5)]);
        }
        if (name.equals("google.protobuf.Duration")) {
            int sign = random.nextInt(3) - 1;
            return set(builder, sign * random.nextInt(100000), sign * random.nextInt(1000) * 1000000L);
        }
        if (name.equals("google.type.Date")) {
            return set(builder, 1 + random.nextInt(9999), 1 + random.nextInt(12), 1 + random.nextInt(28));
        }
        if (name.equals("google.type.TimeOfDay")) {
            return set(
                builder, random.nextInt(24), random.nextInt(60), random.nextInt(60), random.nextInt(1000000000));
        }
        if (name.equals("google.protobuf.Value")) {
            int kind = 1 + random.nextInt(level > 5 ? 4 : 6);
            FieldDescriptor field = type.findFieldByNumber(kind);
            builder.setField(field, value(field, level));
            return true;
        }
        return false;
    }

    private boolean set(DynamicMessage.Builder builder, long... numbers) {
        Descriptor type = builder.getDescriptorForType();
        for (int at = 0; at < numbers.length; at++) {
            FieldDescriptor field = type.findFieldByNumber(at + 1);
            boolean isLong = field.getJavaType() == FieldDescriptor.JavaType.LONG;
            builder.setField(field, isLong ? (Object) Long.valueOf(numbers[at]) : (Object) Integer.valueOf((int) numbers[at]));
        }
        return true;
    }

    private Object value(FieldDescriptor field, int level) {
        switch (field.getJavaType().ordinal()) {
            case 0:
                int[] ints = {0, 1, -1, 300, Integer.MAX_VALUE, Integer.MIN_VALUE, random.nextInt()};
                return Integer.valueOf(ints[random.nextInt(7)]);
            case 1:
                long[] longs = {0L, 1L, -1L, 1L << 53, (1L << 53) + 1, Long.MAX_VALUE, random.nextLong()};
                return Long.valueOf(longs[random.nextInt(7)]);
            case 2:
                float[] floats = {0f, -0f, 0.1f, 1e20f, Float.MAX_VALUE, Float.MIN_VALUE, Float.NaN, Float.NEGATIVE_INFINITY};
                return Float.valueOf(floats[random.nextInt(8)]);
            case 3:
                double[] doubles = {0, -0d, 0.1, 1e300, Double.MIN_VALUE, 1.5, 123456789.125, random.nextGaussian()};
                return Double.valueOf(random.nextInt(40) == 0 ? Double.NaN : doubles[random.nextInt(8)]);
            case 4:
                return Boolean.valueOf(random.nextBoolean());
            case 5:
                return TEXTS[random.nextInt(TEXTS.length)];
            case 6:
                byte[] bytes = new byte[random.nextInt(4)];
                random.nextBytes(bytes);
                return ByteString.copyFrom(bytes);
            case 7:
                EnumDescriptor type = field.getEnumType();
                if (!type.isClosed() && !type.getFullName().startsWith("google.") && random.nextInt(5) == 0) {
                    return type.findValueByNumberCreatingIfUnknown(1000 + random.nextInt(5));
                }
                return type.getValues().get(random.nextInt(type.getValues().size()));
        }
        return message(field.getMessageType(), level + 1);
    }
}
