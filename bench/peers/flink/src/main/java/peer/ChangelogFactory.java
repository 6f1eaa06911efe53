package peer;

import java.util.Set;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.legacy.table.connector.source.SourceFunctionProvider;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsSourceWatermark;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.types.RowKind;

/** The connector: tables are changelogs in memory whose epochs watermarks end, and answers are summed or kept. */
public final class ChangelogFactory implements DynamicTableSourceFactory, DynamicTableSinkFactory {
  @Override
  public String factoryIdentifier() {
    return "changelog";
  }

  @Override
  public Set<ConfigOption<?>> requiredOptions() {
    return Set.of();
  }

  @Override
  public Set<ConfigOption<?>> optionalOptions() {
    return Set.of();
  }

  @Override
  public DynamicTableSource createDynamicTableSource(Context context) {
    return new TableSource(Main.spec.table(context.getObjectIdentifier().getObjectName()));
  }

  @Override
  public DynamicTableSink createDynamicTableSink(Context context) {
    return new TableSink();
  }

  private record TableSource(Spec.Table table) implements ScanTableSource, SupportsSourceWatermark {
    @Override
    public ChangelogMode getChangelogMode() {
      // A rank keeps what it needs for removals only if a source declares all kinds of changes.
      return table.insertsOnly() ? ChangelogMode.insertOnly() : ChangelogMode.all();
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
      return SourceFunctionProvider.of(new Feed(table.name()), false);
    }

    @Override
    public void applySourceWatermark() {}

    @Override
    public DynamicTableSource copy() {
      return this;
    }

    @Override
    public String asSummaryString() {
      return "changelog " + table.name();
    }
  }

  /** Hands over the rows of one table, epoch by epoch, each subtask its share. */
  private static final class Feed extends RichParallelSourceFunction<RowData> {
    private static final long serialVersionUID = 1L;
    private final String name;

    Feed(String name) {
      this.name = name;
    }

    @Override
    public void run(SourceContext<RowData> context) throws Exception {
      Spec.Table table = Main.spec.table(name);
      int index = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
      int step = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
      for (int epoch = 0; epoch < table.epochs().length; epoch++) {
        Main.gate.await(epoch);
        long[] rows = table.epochs()[epoch];
        for (long row = rows[0] + index; row < rows[1]; row += step) {
          context.collect(table.row(RowKind.DELETE, (int) row));
        }
        for (long row = rows[2] + index; row < rows[3]; row += step) {
          context.collect(table.row(RowKind.INSERT, (int) row));
        }
        context.emitWatermark(new Watermark(Main.spec.watermarks[epoch]));
      }
      Main.gate.await(table.epochs().length);
    }

    @Override
    public void cancel() {
      // The process ends with its only job.
    }
  }

  private static final class TableSink implements DynamicTableSink {
    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
      return ChangelogMode.all(); // with what a row was before: without a key nothing else says which row goes
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
      return SinkV2Provider.of(new Ends());
    }

    @Override
    public DynamicTableSink copy() {
      return this;
    }

    @Override
    public String asSummaryString() {
      return "answer";
    }
  }

  private static final class Ends implements Sink<RowData> {
    private static final long serialVersionUID = 1L;

    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
      int index = context.getTaskInfo().getIndexOfThisSubtask();
      Answer answer = Main.answers[index];
      Main.gate.opened(context.getTaskInfo().getNumberOfParallelSubtasks());
      return new SinkWriter<>() {
        @Override
        public void write(RowData row, Context each) {
          answer.add(row);
        }

        @Override
        public void writeWatermark(org.apache.flink.api.common.eventtime.Watermark watermark) {
          if (watermark.getTimestamp() >= Main.spec.watermarks[0]) {
            answer.loaded();
          }
          Main.gate.reached(index, watermark.getTimestamp());
        }

        @Override
        public void flush(boolean end) {}

        @Override
        public void close() {}
      };
    }
  }
}
