package peer;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExecutionOptions;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.ExplainDetail;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TablePipeline;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;
import org.apache.flink.util.FlinkRuntimeException;

/**
 * One query of Flink SQL over tables whose rows come and go: how long do the load and each change take?
 *
 * <p>Timed are the load and each group of epochs, from the moment in which sources may hand over their rows until
 * all sinks have the watermark behind them. Planning the query and starting its tasks is not. Folders before the last
 * one are small runs of the same query, behind which the virtual machine has compiled what it needs.
 */
public final class Main {
  static Spec spec;
  static Gate gate;
  static Answer[] answers;

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 0) {
      System.err.println("usage: peer.Main FOLDER ... (each with spec.json and the words of columns; the last counts)");
      System.exit(2);
    }
    try {
      Map<String, Object> line = Map.of();
      for (String folder : arguments) {
        line = run(Path.of(folder));
      }
      System.out.println(new ObjectMapper().writeValueAsString(line));
    } catch (Exception error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      System.err.println("flinkpeer: " + cause);
      System.exit(1);
    }
    System.exit(0); // threads of Flink would go on for a while
  }

  private static Map<String, Object> run(Path folder) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(PipelineOptions.OBJECT_REUSE, true);
    configuration.set(ExecutionOptions.BUFFER_TIMEOUT, Duration.ofMillis(1));
    configuration.setString("table.exec.sink.upsert-materialize", "NONE");
    configuration.setString("table.local-time-zone", "UTC");
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
    spec = null;
    answers = null;
    System.gc();
    forgetPeak();
    double idle = mib("VmRSS");
    spec = new Spec(folder);
    gate = new Gate(spec);
    environment.setParallelism(spec.parallelism);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    for (Spec.Table table : spec.tables) {
      tables.executeSql(table.statement());
    }
    for (String statement : spec.statements) {
      tables.executeSql(statement);
    }
    Table query = tables.sqlQuery(spec.query);
    List<LogicalType> types = new ArrayList<>();
    Schema.Builder schema = Schema.newBuilder();
    for (Column column : query.getResolvedSchema().getColumns()) {
      LogicalType type = column.getDataType().getLogicalType();
      DataType kept = LogicalTypeChecks.isTimeAttribute(type) ? DataTypes.TIMESTAMP(3) : column.getDataType();
      schema.column(column.getName(), kept);
      types.add(kept.getLogicalType());
    }
    answers = new Answer[spec.parallelism];
    for (int sink = 0; sink < answers.length; sink++) {
      answers[sink] = new Answer(spec, types);
    }
    tables.createTemporaryTable("answer", TableDescriptor.forConnector("changelog").schema(schema.build()).build());
    TablePipeline pipeline = query.insertInto("answer");
    String plan = pipeline.explain(ExplainDetail.CHANGELOG_MODE);
    Files.writeString(folder.resolve("plan.txt"), plan);
    return measured(pipeline.execute(), idle, plan);
  }

  private static Map<String, Object> measured(TableResult job, double idle, String plan) throws Exception {
    Thread watcher = new Thread(() -> {
      try {
        job.await();
      } catch (Exception error) {
        gate.failed(error);
      }
    });
    watcher.setDaemon(true);
    watcher.start();
    // A table that the plan reads twice has one source or two: count what it says.
    gate.awaitRunning(sources(plan) * spec.parallelism);
    double load = milliseconds(0, 0) / 1e3;
    List<Double> changes = new ArrayList<>();
    int epochs = spec.watermarks.length;
    for (int first = 1; first < epochs; first += spec.batch) {
      changes.add(milliseconds(first, Math.min(first + spec.batch, epochs) - 1));
    }
    double peak = mib("VmHWM");
    gate.allow(epochs); // the sources end, and with them all windows
    watcher.join();
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("system", "Flink SQL " + org.apache.flink.runtime.util.EnvironmentInformation.getVersion());
    line.put("load_seconds", load);
    line.put("change_ms_all", changes);
    line.put("idle_mib", idle);
    line.put("peak_mib", peak);
    if (spec.checked != null) {
      line.put("check_load", check(true));
      line.put("check_changes", check(false));
    } else {
      StringBuilder lines = new StringBuilder();
      for (Map.Entry<String, Long> row : Answer.accumulated(answers).entrySet()) {
        if (row.getValue() < 0) {
          throw new FlinkRuntimeException("a row is there " + row.getValue() + " times: " + row.getKey());
        }
        for (long time = 0; time < row.getValue(); time++) {
          lines.append(row.getKey()).append('\n');
        }
      }
      Files.writeString(spec.folder.resolve("answer.tsv"), lines);
    }
    return line;
  }

  private static double milliseconds(int first, int last) throws Exception {
    long begin = System.nanoTime();
    gate.allow(last);
    gate.awaitEnd(last);
    return (System.nanoTime() - begin) / 1e6;
  }

  /** How many sources the executed plan has: one reused is there once, with the name of the reuse elsewhere. */
  private static int sources(String plan) {
    String executed = plan.substring(plan.indexOf("== Optimized Execution Plan =="));
    return executed.split("TableSourceScan\\(", -1).length - 1;
  }

  private static Map<String, Object> check(boolean ofLoad) {
    long[] sums = new long[4];
    for (Answer answer : answers) {
      long[] own = ofLoad ? answer.load : answer.now;
      if (own == null) {
        continue; // there are fewer sinks than workers
      }
      for (int place = 0; place < sums.length; place++) {
        sums[place] += own[place];
      }
    }
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("n", sums[0]);
    line.put("special", spec.special.isEmpty() ? null : sums[1]);
    line.put("sum", sums[2]);
    line.put("hash", String.format("%016x", sums[3]));
    return line;
  }

  /** From now on the peak is that from now on; where the system does not allow it, it stays what it is. */
  private static void forgetPeak() {
    try {
      Files.writeString(Path.of("/proc/self/clear_refs"), "5");
    } catch (java.io.IOException error) {
      return;
    }
  }

  private static double mib(String counter) throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith(counter + ":")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) / 1024.0;
      }
    }
    throw new IllegalStateException("/proc/self/status has no " + counter);
  }
}
