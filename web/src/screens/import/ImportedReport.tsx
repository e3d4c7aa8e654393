import { useEffect, useMemo, useRef, useState } from "react";
import type { ImportReport, ImportSetup } from "@/api/types";
import { writeJson } from "@/json";
import { Button } from "@/ui/Button";
import { Count } from "@/ui/Count";
import { formatAmount } from "@/ui/format";
import { Icon, type IconName } from "@/ui/icons";
import { Note } from "@/ui/Note";
import { EntryList } from "./EntryList";
import styles from "./ImportedReport.module.css";
import { ImportPreview } from "./ImportPreview";
import {
  changedEntries,
  edgeNotes,
  entriesOf,
  lostEntries,
  namesOf,
  OUTCOMES,
  otherErrors,
  pythonProgramsIn,
  remarkedEntries,
} from "./importReport";
import { ProviderFields } from "./ProviderFields";
import type { Import, Imported } from "./useImport";

type ImportedReportProps = { imported: Imported; task: Import };

/** What became of a file: its counts, its graph, and all that a person has to know before it runs. */
export function ImportedReport({ imported, task }: ImportedReportProps) {
  const { report, document } = imported.answer;
  const [shown, setShown] = useState<readonly string[]>([]);
  const lists = useMemo(
    () => ({
      changed: changedEntries(report),
      replaced: entriesOf(report, "placeholder"),
      lost: lostEntries(report),
    }),
    [report],
  );
  return (
    <div className={styles.report}>
      <Counts report={report} />
      <ImportPreview graph={document} report={report} shown={shown} />
      <EntryList title="Changed" entries={lists.changed} onShow={setShown} />
      <EntryList title="To be replaced" entries={lists.replaced} onShow={setShown} />
      <Programs imported={imported} task={task} />
      <EntryList title="Lost" entries={lists.lost} onShow={setShown} />
      <Errors imported={imported} />
      <Setup imported={imported} task={task} />
      <Secrets report={report} />
      <Details report={report} onShow={setShown} />
    </div>
  );
}

const ICONS: Readonly<Record<string, IconName>> = {
  mapped: "tick",
  changed: "warning",
  placeholder: "error",
  dropped: "remove",
};

/** How many nodes came over, and how; it has the focus first. */
function Counts({ report }: { report: ImportReport }) {
  const headline = useRef<HTMLParagraphElement>(null);
  useEffect(() => headline.current?.focus(), []);
  return (
    <div className={styles.counts}>
      <p ref={headline} tabIndex={-1}>
        {formatAmount(report.nodes.length, "step")}:
      </p>
      <ul>
        {OUTCOMES.map(({ outcome, words }) => (
          <li key={outcome} data-outcome={outcome} data-none={report.summary[outcome] === 0}>
            <Icon name={ICONS[outcome] ?? "info"} small />
            <b>{report.summary[outcome]}</b> {words}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Offers to make node types of the programs that placeholders show. */
function Programs({ imported, task }: ImportedReportProps) {
  const { answer, options } = imported;
  if (options.write_code) {
    return (
      <Note>
        {answer.code
          ? "Its programs are node types of a Python module. Download it, read it, and have it loaded by the service: nothing runs before."
          : "It has no program that can become a Python module."}
      </Note>
    );
  }
  const count = pythonProgramsIn(answer);
  if (count === 0) return null;
  return (
    <div className={styles.programs}>
      <p>
        {formatAmount(count, "placeholder")} {count === 1 ? "shows" : "show"} a program.
      </p>
      <Button
        small
        onClick={() => void task.again(imported, { write_code: true })}
        aria-busy={task.isBusy}
      >
        Write a Python module of {count === 1 ? "it" : "them"}
      </Button>
    </div>
  );
}

/** What the check finds besides placeholders. */
function Errors({ imported }: { imported: Imported }) {
  const errors = otherErrors(imported.answer);
  if (errors.length === 0) return null;
  return (
    <section className={styles.section} aria-label="Errors">
      <h3>
        Errors <Count plain value={errors.length} />
      </h3>
      <ul className={styles.lines}>
        {errors.map((found) => (
          <li key={`${found.code} ${found.pointer}`}>
            {found.message}
            {found.hint && ` (${found.hint})`} <code>{found.pointer}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}

const SETUP_WORDS: Readonly<Record<ImportSetup["what"], string>> = {
  provider: "Model provider",
  mcp: "MCP server",
  secret: "Secret",
  flow: "Flow",
  tool: "Tool",
};

/** What the operator provides before it can run; another provider may take the place of those in the file. */
function Setup({ imported, task }: ImportedReportProps) {
  const { report, document } = imported.answer;
  if (report.setup.length === 0) return null;
  return (
    <section className={styles.section} aria-label="To set up">
      <h3>
        To set up <Count plain value={report.setup.length} />
      </h3>
      <ul className={styles.lines}>
        {report.setup.map(({ what, name, used_by }) => (
          <li key={`${what} ${name}`}>
            {SETUP_WORDS[what]} <b>{name}</b>
            {used_by.length > 0 && ` for ${namesOf(document, used_by).join(", ")}`}
          </li>
        ))}
      </ul>
      {report.setup.some(({ what }) => what === "provider") && (
        <ProviderFields imported={imported} task={task} />
      )}
    </section>
  );
}

function Secrets({ report }: { report: ImportReport }) {
  if (report.secrets.length === 0) return null;
  return (
    <section className={styles.section} aria-label="Secrets that were not copied">
      <h3>
        Secrets that were not copied <Count plain value={report.secrets.length} />
      </h3>
      <ul className={styles.lines}>
        {report.secrets.map(({ name, pointer }) => (
          <li key={pointer}>
            <b>{name}</b> <code>{pointer}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}

type DetailsProps = { report: ImportReport; onShow: (targets: readonly string[]) => void };

/** What is left out without a loss, and what is said of nodes and edges that came over. */
function Details({ report, onShow }: DetailsProps) {
  const dropped = entriesOf(report, "dropped");
  const remarked = remarkedEntries(report);
  const notes = edgeNotes(report);
  const options = Object.entries(report.options);
  if (dropped.length + remarked.length + notes.length + options.length === 0) return null;
  return (
    <details className={styles.details}>
      <summary>Details</summary>
      <div className={styles.report}>
        <EntryList title="Left out" entries={dropped} onShow={onShow} />
        <EntryList title="As they were, with a remark" entries={remarked} onShow={onShow} />
        {notes.length > 0 && (
          <section className={styles.section} aria-label="Edges">
            <h3>Edges</h3>
            <ul className={styles.lines}>
              {notes.map(({ message, hint, pointers }) => (
                <li key={message}>
                  {message}
                  {hint && ` (${hint})`} <code>{pointers.join(", ")}</code>
                </li>
              ))}
            </ul>
          </section>
        )}
        {options.length > 0 && (
          <section className={styles.section} aria-label="Options of the run">
            <h3>Options of the run</h3>
            <ul className={styles.lines}>
              {options.map(([name, value]) => (
                <li key={name}>
                  {name} <code>{writeJson(value)}</code>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </details>
  );
}
