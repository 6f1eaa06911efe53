package peer;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.types.RowKind;

/** What is to be run: tables with all their rows in memory, which rows come and go in each epoch, and the query. */
final class Spec {
  /** One column. Words hold numbers, days and milliseconds; a text has its bytes between two offsets. */
  record Column(String name, String type, long[] words, byte[] bytes) {
    Object at(int row) {
      if (type.startsWith("STRING")) {
        int start = (int) words[row];
        return StringData.fromBytes(bytes, start, (int) words[row + 1] - start);
      }
      if (type.startsWith("TIMESTAMP")) {
        return TimestampData.fromEpochMillis(words[row]);
      }
      if (type.startsWith("DATE")) {
        return (int) words[row];
      }
      return words[row];
    }
  }

  /** One table. Epoch e removes rows removedFrom … removedTo − 1 and inserts insertedFrom … insertedTo − 1. */
  record Table(String name, List<Column> columns, long[][] epochs, String rowtime, boolean insertsOnly) {
    GenericRowData row(RowKind kind, int number) {
      GenericRowData row = new GenericRowData(kind, columns.size());
      for (int place = 0; place < columns.size(); place++) {
        row.setField(place, columns.get(place).at(number));
      }
      return row;
    }

    String statement() {
      List<String> parts = new ArrayList<>();
      for (Column column : columns) {
        parts.add("`" + column.name() + "` " + column.type());
      }
      if (rowtime != null) {
        parts.add("WATERMARK FOR `" + rowtime + "` AS SOURCE_WATERMARK()");
      }
      return "CREATE TABLE `" + name + "` (" + String.join(", ", parts) + ") WITH ('connector' = 'changelog')";
    }
  }

  final Path folder;
  final int parallelism;
  final int batch;
  final List<Table> tables = new ArrayList<>();
  final List<String> statements = new ArrayList<>();
  final String query;
  /** The watermark that ends each epoch; the first is that of the load. */
  final long[] watermarks;
  /** Places of the columns that are checked: the two that are hashed, and the one that is summed. */
  final int[] checked;
  final String special;

  Spec(Path folder) throws IOException {
    this.folder = folder;
    JsonNode json = new ObjectMapper().readTree(Files.readAllBytes(folder.resolve("spec.json")));
    parallelism = json.get("parallelism").asInt();
    batch = json.get("batch").asInt();
    query = json.get("query").asText();
    json.get("statements").forEach(each -> statements.add(each.asText()));
    watermarks = words(json.get("watermarks"));
    JsonNode check = json.get("check");
    checked = check.isNull() ? null : new int[] {check.get(0).asInt(), check.get(1).asInt(), check.get(2).asInt()};
    special = json.get("special").asText();
    for (JsonNode table : json.get("tables")) {
      tables.add(table(table));
    }
  }

  Table table(String name) {
    return tables.stream().filter(each -> each.name().equals(name)).findFirst().orElseThrow();
  }

  private Table table(JsonNode json) throws IOException {
    String name = json.get("name").asText();
    List<Column> columns = new ArrayList<>();
    for (JsonNode column : json.get("columns")) {
      String called = column.get("name").asText();
      Path words = folder.resolve(name + "." + called + ".words");
      Path bytes = folder.resolve(name + "." + called + ".bytes");
      byte[] text = Files.exists(bytes) ? Files.readAllBytes(bytes) : null;
      columns.add(new Column(called, column.get("type").asText(), words(words), text));
    }
    List<long[]> epochs = new ArrayList<>();
    json.get("epochs").forEach(each -> epochs.add(words(each)));
    String rowtime = json.get("rowtime").isNull() ? null : json.get("rowtime").asText();
    return new Table(name, columns, epochs.toArray(long[][]::new), rowtime, json.get("inserts_only").asBoolean());
  }

  private static long[] words(JsonNode json) {
    long[] words = new long[json.size()];
    for (int place = 0; place < words.length; place++) {
      words[place] = json.get(place).asLong();
    }
    return words;
  }

  private static long[] words(Path path) throws IOException {
    try (FileChannel file = FileChannel.open(path)) {
      long[] words = new long[(int) (file.size() / Long.BYTES)];
      ByteBuffer buffer = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
      buffer.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
      return words;
    }
  }
}
