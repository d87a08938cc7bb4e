"""Writes 500 keys into a Hudi table under the index BLOOM, or upserts one and prints the rows that then have it:

python upserts.py JAR TABLE write|upsert
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "n",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.index.type": "BLOOM",
    "hoodie.index.bloom.num_entries": "500",
    "hoodie.index.bloom.fpp": "0.01",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.small.file.limit": "0",
}
OPENS = ("java.nio", "java.util", "java.lang", "java.lang.invoke", "sun.nio.ch")

jar, path, step = sys.argv[1:]
session = SparkSession.builder.master("local[1]").config("spark.jars", jar).config("spark.ui.enabled", "false")
session = session.config("spark.default.parallelism", "1").config("spark.sql.shuffle.partitions", "1")
session = session.config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
session = session.config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
session = session.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
session = session.config(
    "spark.driver.extraJavaOptions", " ".join(f"--add-opens=java.base/{one}=ALL-UNNAMED" for one in OPENS)
)
spark = session.getOrCreate()
first, end, n, mode = (0, 500, "id", "overwrite") if step == "write" else (250, 251, "1000", "append")
rows = spark.range(first, end).selectExpr("format_string('k%05d', id) id", f"cast({n} as int) n")
operation = "insert" if step == "write" else "upsert"
rows.write.format("hudi").options(**OPTIONS).option("hoodie.datasource.write.operation", operation).mode(mode).save(
    path
)
print("ROWS", spark.read.format("hudi").load(path).where("id = 'k00250'").count())
