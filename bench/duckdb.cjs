// duckdb.cjs: runs statements in DuckDB for cache_bench.sh, and says how long they take.
//
//	node duckdb.cjs DATABASE < STATEMENTS
//
// A statement is a line.  For each its last row is printed, as psql -At does, and "Time: MS ms".  Needs the package
// @duckdb/node-api, which node looks for where NODE_PATH says, too.
'use strict';

const readline = require('node:readline');
const { DuckDBInstance } = require('@duckdb/node-api');

async function main(path)
{
	const instance = await DuckDBInstance.create(path);
	const connection = await instance.connect();

	for await (const statement of readline.createInterface({ input: process.stdin }))
	{
		const begun = performance.now();
		const rows = (await connection.runAndReadAll(statement)).getRows();
		const ms = performance.now() - begun;

		if (rows.length > 0)
			console.log(rows[rows.length - 1].map(String).join('|'));
		console.log(`Time: ${ms.toFixed(3)} ms`);
	}
	connection.closeSync();
	instance.closeSync();
}

main(process.argv[2]).catch((error) =>
{
	console.error(`duckdb.cjs: ${error.message}`);
	process.exitCode = 1;
});
