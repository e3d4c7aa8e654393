import { readdirSync, readFileSync } from "node:fs";
import type { ExecutionEvent, SnapshotMessage } from "@/api/types";

const FOLDER = `${import.meta.dirname}/../../../tests/contract/engine/golden_logs/logs`;

/** A recorded execution with the service's document of it; times are not recorded. */
export type GoldenRun = {
  readonly name: string;
  readonly events: ExecutionEvent[];
  readonly state: SnapshotMessage;
  readonly typedLog: { nodeId: string; type: string; content: string }[];
};

type Recorded = {
  events: [string, string | null, number | null, unknown][];
  state: Omit<SnapshotMessage, "type" | "logs">;
  typed_log: GoldenRun["typedLog"];
};

/** Return all recorded executions. */
export function goldenRuns(): GoldenRun[] {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".json"));
  return files.flatMap((file) => {
    const text = readFileSync(`${FOLDER}/${file}`, "utf-8").replaceAll('"<seconds>"', "1.5");
    // A file holds one document for each execution.
    const documents: Recorded[] = JSON.parse(`[${text.replaceAll(/^}\n\{$/gm, "},{")}]`);
    return documents.map((document, index) => ({
      name: `${file} ${index + 1}`,
      events: numbered(document.events, document.state.execution_id),
      state: { ...document.state, type: "snapshot", logs: [] },
      typedLog: document.typed_log,
    }));
  });
}

function numbered(events: Recorded["events"], executionId: string): ExecutionEvent[] {
  let last = 0;
  return events.map(([type, path, attempt, data], index) => ({
    execution_id: executionId,
    seq: type === "node.delta" ? 0 : ++last,
    at: new Date(Date.UTC(2026, 0, 1) + index * 1000).toISOString(),
    type,
    ...(path === null ? {} : { path }),
    ...(attempt === null ? {} : { attempt }),
    data,
  })) as ExecutionEvent[];
}
