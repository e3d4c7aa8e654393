import { memo, useRef, useState } from "react";
import type { LogEntry } from "@/stream/runState";
import { formatTime } from "@/ui/format";
import { Segmented } from "@/ui/Segmented";
import { useStickToEnd } from "@/ui/useStickToEnd";
import styles from "./LogView.module.css";

type LogViewProps = {
  entries: readonly LogEntry[];
  /** The names of steps by path. */
  nameOf: (path: string) => string;
  /** What the lines have to have; of any case. */
  words: string;
  selectedPath: string | null;
  onSelect: (path: string) => void;
};

/** Lines drawn at once; older ones come when they are asked for. */
const PAGE = 500;
/** Characters of a line that are shown; the whole text is in the step's panel. */
const LONGEST = 400;

/** What happened, line by line, newest last. */
export function LogView({ entries, nameOf, words, selectedPath, onSelect }: LogViewProps) {
  const [scope, setScope] = useState<"all" | "step">("all");
  const [shown, setShown] = useState(PAGE);
  const list = useRef<HTMLDivElement>(null);
  const sought = words.trim().toLowerCase();
  const isShown = (entry: LogEntry) =>
    (scope === "all" || selectedPath === null || entry.path === selectedPath) &&
    (sought === "" ||
      `${nameOf(entry.path)} ${wordOf(entry)} ${entry.text}`.toLowerCase().includes(sought));
  const lines = entries.filter(isShown);
  const hidden = Math.max(0, lines.length - shown);
  useStickToEnd(list);
  return (
    <div className={styles.log} ref={list}>
      {selectedPath !== null && (
        <div className={styles.scope}>
          <Segmented
            label="Lines of"
            value={scope}
            options={[
              { value: "all", label: "All steps" },
              { value: "step", label: nameOf(selectedPath) },
            ]}
            onChange={setScope}
          />
        </div>
      )}
      {hidden > 0 && (
        <button type="button" className={styles.more} onClick={() => setShown(shown + PAGE)}>
          Show {Math.min(hidden, PAGE)} earlier lines
        </button>
      )}
      <ol aria-label="Log">
        {lines.slice(-shown).map((entry) => (
          <Line key={entry.seq} entry={entry} name={nameOf(entry.path)} onSelect={onSelect} />
        ))}
      </ol>
      {lines.length === 0 && (
        <p className={styles.empty}>
          {sought ? "No line has these words." : "Nothing has happened yet."}
        </p>
      )}
    </div>
  );
}

type LineProps = { entry: LogEntry; name: string; onSelect: (path: string) => void };

const Line = memo(function Line({ entry, name, onSelect }: LineProps) {
  return (
    <li className={styles.line} data-type={entry.type}>
      <time dateTime={entry.at}>{formatTime(new Date(entry.at), true)}</time>
      {entry.path === "system" ? (
        <span className={styles.who}>The run</span>
      ) : (
        <button type="button" className={styles.who} onClick={() => onSelect(entry.path)}>
          {name}
        </button>
      )}
      <span className={styles.type}>{wordOf(entry)}</span>
      <span className={styles.text}>{shorten(entry.text)}</span>
    </li>
  );
});

const WORDS: Partial<Record<LogEntry["type"], string>> = {
  step_start: "started",
  start_prompt: "prompt",
  logic_check: "decided",
  wait_input: "waits",
  input_received: "answered",
  llm_response: "result",
  llm_error: "failed",
  error: "failed",
  tool_call_start: "calls",
  tool_call_end: "returned",
  tool_call_error: "call failed",
  subagent_call_start: "asks",
  subagent_call_end: "replied",
  subagent_call_error: "call failed",
};

function wordOf({ type }: LogEntry): string {
  return WORDS[type] ?? type.replaceAll("_", " ");
}

function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}
