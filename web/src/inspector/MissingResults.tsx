import type { MissingResult } from "@/api/types";
import type { RunState } from "@/stream/runState";
import { StatusIcon } from "@/ui/Status";
import parts from "./parts.module.css";

type MissingResultsProps = {
  run: RunState;
  missing: readonly MissingResult[];
  onSelect: (path: string) => void;
};

/** The results that are not there, and the steps that are the reason. */
export function MissingResults({ run, missing, onSelect }: MissingResultsProps) {
  if (missing.length === 0) {
    return (
      <p className={parts.missing}>All results are there; the step that failed led to none.</p>
    );
  }
  const step = (path: string, name = run.nodes.get(path)?.name ?? path) => (
    <button type="button" className={parts.link} onClick={() => onSelect(path)}>
      {name}
    </button>
  );
  return (
    <section className={parts.missing} aria-labelledby="missing-results">
      <h3 id="missing-results">Missing</h3>
      <ul>
        {missing.map(({ path, name, status, cause }) => (
          <li key={path}>
            <StatusIcon status={status} />
            <span>
              {step(path, name)}
              {cause.node === path ? " failed" : null}
              {cause.node === null ? ` did not run: ${cause.error.message}` : null}
              {cause.node && cause.node !== path ? <>, because {step(cause.node)} failed</> : null}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
