import type { DocumentResponse } from "@/api/types";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import styles from "@/screens/compare/CompareFacts.module.css";
import {
  changedWords,
  type Fact,
  factsOf,
  glyphOf,
  type Pair,
  type StepPair,
} from "@/screens/compare/comparison";
import { SIDES, SideMark } from "@/screens/compare/SideMark";
import { STATUS_WORDS, Status } from "@/ui/Status";
import { useNow } from "@/ui/useNow";

const ARROWS = { less: "↓", more: "↑", same: "", none: "" } as const;

/** The numbers of two runs beside each other. */
export function CompareFacts(props: { runs: Pair<DocumentResponse>; steps: readonly StepPair[] }) {
  const { runs, steps } = props;
  const now = useNow(runs.some((run) => run.completed_at === null));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
    <section aria-label="Facts" tabIndex={0}>
      <table className={styles.facts}>
        <thead className="visually-hidden">
          <tr>
            <th scope="col">Fact</th>
            <th scope="col">A</th>
            <th scope="col">B</th>
          </tr>
        </thead>
        <tbody>
          <Statuses runs={runs} />
          {factsOf(runs, now).map((fact) => (
            <FactRow key={fact.label} fact={fact} />
          ))}
          <tr>
            <th scope="row">Changed</th>
            <td colSpan={2}>{changedWords(steps)}</td>
          </tr>
          <tr>
            <th scope="row">Waves</th>
            {SIDES.map((side, index) => (
              <td key={side}>
                <Glyph run={runs[index]} />
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </section>
  );
}

function Statuses({ runs: [a, b] }: { runs: Pair<DocumentResponse> }) {
  return (
    <tr>
      <th scope="row">Status</th>
      {a.status === b.status ? (
        <td colSpan={2}>
          <Status status={a.status}>Both {STATUS_WORDS[a.status].toLowerCase()}</Status>
        </td>
      ) : (
        <>
          <td>
            <Status status={a.status} />
          </td>
          <td>
            <Status status={b.status} />
          </td>
        </>
      )}
    </tr>
  );
}

function FactRow({ fact: { label, words, trend } }: { fact: Fact }) {
  return (
    <tr>
      <th scope="row">{label}</th>
      <td>{words[0]}</td>
      <td className={styles[trend]}>
        <span aria-hidden="true">{ARROWS[trend]} </span>
        {words[1]}
        {trend !== "none" && <span className="visually-hidden">, {trend}</span>}
      </td>
    </tr>
  );
}

function Glyph({ run }: { run: DocumentResponse | undefined }) {
  const waves = run ? glyphOf(run) : [];
  return (
    <>
      <WaveGlyph waves={waves} />
      <span className="visually-hidden">{waves.length}</span>
    </>
  );
}

/** The letters over the columns of a comparison. */
export function SideHeads() {
  return SIDES.map((side) => (
    <th key={side} scope="col">
      <SideMark side={side} small />
    </th>
  ));
}
