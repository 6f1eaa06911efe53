package peer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.RowKind;

/** What one sink has got: the sums of the checks, or, where none are asked for, all rows. */
final class Answer {
  private final int[] checked;
  private final String special;
  private final RowData.FieldGetter[] getters;
  private final RowDataSerializer serializer;
  private final List<BinaryRowData> rows = new ArrayList<>();
  /** n, special, sum and hash: after the load, and now. */
  long[] load;
  long[] now = new long[4];

  Answer(Spec spec, List<LogicalType> types) {
    checked = spec.checked;
    special = spec.special;
    serializer = new RowDataSerializer(types.toArray(LogicalType[]::new));
    getters = new RowData.FieldGetter[types.size()];
    for (int place = 0; place < getters.length; place++) {
      getters[place] = RowData.createFieldGetter(types.get(place), place);
    }
  }

  void add(RowData row) {
    if (checked == null) {
      rows.add(serializer.toBinaryRow(row).copy()); // in memory of its own, with its kind
      return;
    }
    long a = row.getLong(checked[0]);
    long b = row.getLong(checked[1]);
    long diff = isThere(row) ? 1 : -1;
    now[0] += diff;
    if ((special.equals("equal") && a == b) || (special.equals("one") && b == 1)) {
      now[1] += diff;
    }
    now[2] += diff * row.getLong(checked[2]);
    now[3] += diff * mix(a, b & 0xffffffffL);
  }

  void loaded() {
    if (load == null) {
      load = now.clone();
    }
  }

  /** Add this sink's rows to how often each is there, as one line each. */
  private void accumulate(Map<String, Long> counts) {
    for (BinaryRowData row : rows) {
      StringBuilder line = new StringBuilder();
      for (int place = 0; place < getters.length; place++) {
        Object value = getters[place].getFieldOrNull(row);
        boolean isTime = value instanceof TimestampData;
        Object shown = value == null ? "\\N" : isTime ? ((TimestampData) value).getMillisecond() : value;
        line.append(place > 0 ? "\t" : "").append(shown);
      }
      counts.merge(line.toString(), isThere(row) ? 1L : -1L, Long::sum);
    }
  }

  private static boolean isThere(RowData row) {
    return row.getRowKind() == RowKind.INSERT || row.getRowKind() == RowKind.UPDATE_AFTER;
  }

  static Map<String, Long> accumulated(Answer[] answers) {
    Map<String, Long> counts = new HashMap<>();
    for (Answer answer : answers) {
      answer.accumulate(counts);
    }
    counts.values().removeIf(count -> count == 0);
    return counts;
  }

  private static long mix(long a, long b) {
    long x = a << 32 | b;
    x = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
    x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
    return x ^ (x >>> 31);
  }
}
