// Writes and reads tables by Paimon's own library, for tests/interop/test_paimon_reads.py.
//
//   write WAREHOUSE            makes the tables d.parquet, d.orc, d.embedded and d.large
//   find                       reads lines "column row table warehouse" and prints for each the number of rows that a
//                              query for the row's value finds

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.fs.Path;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;

public class PaimonTables {
    static final int ROWS = 300;
    static final String[] NAMES = {
        "text", "fixed", "raw", "tiny", "small", "whole", "big", "real", "wide", "day", "clock", "milli", "micro",
        "nano", "local", "tags"
    };
    static final DataType[] TYPES = {
        DataTypes.STRING(), DataTypes.CHAR(6), DataTypes.BYTES(), DataTypes.TINYINT(), DataTypes.SMALLINT(),
        DataTypes.INT(), DataTypes.BIGINT(), DataTypes.FLOAT(), DataTypes.DOUBLE(), DataTypes.DATE(),
        DataTypes.TIME(3), DataTypes.TIMESTAMP(3), DataTypes.TIMESTAMP(6), DataTypes.TIMESTAMP(9),
        DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(6), DataTypes.MAP(DataTypes.STRING(), DataTypes.STRING())
    };

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            Catalog catalog = catalog(args[1]);
            catalog.createDatabase("d", true);
            write(catalog, "parquet", "parquet", String.join(",", NAMES) + "[colour]", 300);
            write(catalog, "orc", "orc", String.join(",", NAMES) + "[colour]", 300);
            write(catalog, "embedded", "parquet", "text,whole", 300);
            write(catalog, "large", "parquet", "text", 1_000_000);
        } else {
            find();
        }
    }

    static Catalog catalog(String warehouse) {
        return CatalogFactory.createCatalog(CatalogContext.create(new Path(warehouse)));
    }

    static Object value(int column, int row) {
        long micros = (row - 100) * 86_399_000_017L;
        switch (column) {
            case 0: return BinaryString.fromString("key\u00e9 " + row);
            case 1: return BinaryString.fromString("c" + row);
            case 2: return new byte[] {(byte) row, (byte) (row >> 8), -1};
            case 3: return (byte) (row % 256 - 128);
            case 4: return (short) (row * 7 - 900);
            case 5: return row * 3 - 450;
            case 6: return (row - 100) * 10_000_000_019L;
            case 7: return row == 0 ? Float.NaN : row == 1 ? -0.0f : row / 7f - 20;
            case 8: return row == 0 ? Double.NaN : row == 1 ? -0.0 : row / 7.0 - 20;
            case 9: return row * 90 - 9000;
            case 10: return row * 100_001;
            case 11: return Timestamp.fromEpochMillis(micros / 1000);
            case 15: return new GenericMap(Map.of(BinaryString.fromString("colour"), BinaryString.fromString("c" + row)));
            case 12: case 14: return Timestamp.fromMicros(micros);
            default: return Timestamp.fromEpochMillis(micros / 1000, row);
        }
    }

    static void write(Catalog catalog, String name, String format, String filtered, int items) throws Exception {
        Schema.Builder schema = Schema.newBuilder();
        boolean all = filtered.contains("tiny");
        for (int i = 0; i < NAMES.length; i++) {
            if (all || filtered.contains(NAMES[i])) schema.column(NAMES[i], TYPES[i]);
        }
        for (String column : filtered.split(",")) {
            schema.option("file-index.bloom-filter." + column + ".items", String.valueOf(items));
        }
        schema.option("file-index.bloom-filter.columns", filtered);
        if (all) schema.option("file-index.bitmap.columns", "tiny");
        schema.option("file.format", format).option("bucket", "-1");
        catalog.createTable(Identifier.create("d", name), schema.build(), false);
        append(catalog.getTable(Identifier.create("d", name)).newBatchWriteBuilder());
        if (name.equals("large")) {
            append(catalog.getTable(Identifier.create("d", name)).newBatchWriteBuilder().withOverwrite());
        }
    }

    static void append(BatchWriteBuilder builder) throws Exception {
        try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
            for (int row = 0; row < ROWS; row++) {
                GenericRow values = new GenericRow(builder.rowType().getFieldCount());
                for (int i = 0; i < NAMES.length; i++) {
                    int field = builder.rowType().getFieldIndex(NAMES[i]);
                    if (field >= 0 && row % 50 != 49) values.setField(field, value(i, row));
                }
                write.write(values);
            }
            commit.commit(write.prepareCommit());
        }
    }

    static void find() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ", 4);
            int column = Integer.parseInt(words[0]), row = Integer.parseInt(words[1]);
            Object wanted = value(column, row);
            Table table = catalog(words[3]).getTable(Identifier.create("d", words[2]));
            PredicateBuilder predicates = new PredicateBuilder(table.rowType());
            String found;
            try {
                found = String.valueOf(count(table, predicates.equal(predicates.indexOf(NAMES[column]), wanted)));
            } catch (Exception error) {
                Throwable cause = error;
                while (cause.getCause() != null) cause = cause.getCause();
                found = cause.getClass().getSimpleName();
            }
            System.out.println(found);
        }
    }

    static int count(Table table, Predicate predicate) throws Exception {
        ReadBuilder builder = table.newReadBuilder().withFilter(predicate);
        int[] found = {0};
        try (RecordReader<InternalRow> reader =
                builder.newRead().executeFilter().createReader(builder.newScan().plan())) {
            reader.forEachRemaining(row -> found[0]++);
        }
        return found[0];
    }
}
