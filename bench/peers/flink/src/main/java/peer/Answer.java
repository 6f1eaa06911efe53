package peer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.RowKind;

/** What one sink has got: the sums of the checks, or, where none are asked for, all rows. */
final class Answer {
  private final int[] checked;
  private final String special;
  private final RowData.FieldGetter[] getters;
  private final List<Object[]> rows = new ArrayList<>();
  /** n, special, sum and hash: after the load, and now. */
  long[] load;
  long[] now = new long[4];

  Answer(Spec spec, List<LogicalType> types) {
    checked = spec.checked;
    special = spec.special;
    getters = new RowData.FieldGetter[types.size()];
    for (int place = 0; place < getters.length; place++) {
      getters[place] = RowData.createFieldGetter(types.get(place), place);
    }
  }

  void add(RowData row) {
    boolean isThere = row.getRowKind() == RowKind.INSERT || row.getRowKind() == RowKind.UPDATE_AFTER;
    if (checked == null) {
      keep(row, isThere);
      return;
    }
    long a = row.getLong(checked[0]);
    long b = row.getLong(checked[1]);
    long diff = isThere ? 1 : -1;
    now[0] += diff;
    if ((special.equals("equal") && a == b) || (special.equals("one") && b == 1)) {
      now[1] += diff;
    }
    now[2] += diff * row.getLong(checked[2]);
    now[3] += diff * mix(a, b & 0xffffffffL);
  }

  /** The values are copied: a text is in memory that Flink uses again. */
  private void keep(RowData row, boolean isThere) {
    Object[] values = new Object[getters.length + 1];
    for (int place = 0; place < getters.length; place++) {
      Object value = getters[place].getFieldOrNull(row);
      boolean isTime = value instanceof TimestampData;
      values[place] = value == null ? null : isTime ? ((TimestampData) value).getMillisecond() : value.toString();
    }
    values[getters.length] = isThere;
    rows.add(values);
  }

  void loaded() {
    if (load == null) {
      load = now.clone();
    }
  }

  /** Add this sink's rows to how often each is there, as one line each. */
  void accumulate(Map<String, Long> counts) {
    for (Object[] values : rows) {
      StringBuilder line = new StringBuilder();
      for (int place = 0; place < getters.length; place++) {
        line.append(place > 0 ? "\t" : "").append(values[place] == null ? "\\N" : values[place]);
      }
      counts.merge(line.toString(), (Boolean) values[getters.length] ? 1L : -1L, Long::sum);
    }
  }

  static Map<String, Long> accumulated(Answer[] answers) {
    Map<String, Long> counts = new HashMap<>();
    for (Answer answer : answers) {
      answer.accumulate(counts);
    }
    counts.values().removeIf(count -> count == 0);
    return counts;
  }

  int changes() {
    return rows.size();
  }

  private static long mix(long a, long b) {
    long x = a << 32 | b;
    x = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
    x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
    return x ^ (x >>> 31);
  }
}
