import { Link } from "react-router";
import { isEnded, secondsOf, statusesByWave, titleOf, tokensOf } from "@/api/executionSummary";
import type { ExecutionSummary } from "@/api/types";
import { RunStatus } from "@/canvas/RunStatus";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import { SIDES, SideMark } from "@/screens/compare/SideMark";
import type { Ticks } from "@/screens/compare/ticks";
import { RunMenu } from "@/screens/runs/RunMenu";
import styles from "@/screens/runs/RunTable.module.css";
import { costWords, tookWords } from "@/screens/runs/runWords";
import { formatAmount, formatCount, formatMoment } from "@/ui/format";
import { Checkbox } from "@/ui/Switch";
import { numericCell, Row, Table } from "@/ui/Table";
import { useNow } from "@/ui/useNow";

const COLUMNS = [
  { label: "Compare", width: "56px", hiddenLabel: true },
  { label: "Status", width: "140px" },
  { label: "Run" },
  { label: "Waves", width: "84px" },
  { label: "Started", width: "100px" },
  { label: "Took", width: "80px", numeric: true },
  { label: "Steps", width: "64px", numeric: true },
  { label: "Tokens", width: "84px", numeric: true },
  { label: "Cost", width: "96px", numeric: true },
  { label: "Model", width: "148px" },
  { label: "More", width: "64px", hiddenLabel: true },
] as const;

interface RunTableProps {
  executions: readonly ExecutionSummary[];
  ticks: Ticks;
  onTick: (id: string) => void;
  onDelete: (run: ExecutionSummary) => void;
  rememberLink: (id: string, link: HTMLAnchorElement | null) => void;
}

/** The runs, one in a row; on a phone a row has two lines. */
export function RunTable({ executions, ticks, onTick, onDelete, rememberLink }: RunTableProps) {
  return (
    <div className={styles.runs}>
      <Table label="Runs" columns={COLUMNS}>
        {executions.map((run) => (
          <RunRow
            key={run.execution_id}
            run={run}
            tick={ticks.indexOf(run.execution_id)}
            onTick={() => onTick(run.execution_id)}
            onDelete={() => onDelete(run)}
            linkRef={(link) => rememberLink(run.execution_id, link)}
          />
        ))}
      </Table>
    </div>
  );
}

interface RunRowProps {
  run: ExecutionSummary;
  /** 0 for A, 1 for B, -1 for neither. */
  tick: number;
  onTick: () => void;
  onDelete: () => void;
  linkRef: (link: HTMLAnchorElement | null) => void;
}

function RunRow({ run, tick, onTick, onDelete, linkRef }: RunRowProps) {
  const seconds = secondsOf(run, useNow(!isEnded(run)));
  const { digest } = run;
  const side = SIDES[tick];
  const title = titleOf(run);
  const models = digest?.models.join(", ") ?? "";
  return (
    <Row chosen={side !== undefined}>
      <td>
        <Checkbox label={`Compare ${title}`} hiddenLabel checked={tick >= 0} onChange={onTick} />
      </td>
      <td>
        <RunStatus run={run} />
      </td>
      <td>
        <span className={styles.name}>
          <Link
            ref={linkRef}
            className={styles.title}
            to={`/runs/${run.execution_id}`}
            title={title}
          >
            {title}
          </Link>
          {side && <SideMark side={side} />}
        </span>
      </td>
      <td>
        <WaveGlyph waves={statusesByWave(digest)} />
      </td>
      <td className={styles.faint} title={new Date(run.created_at).toLocaleString("en-GB")}>
        {formatMoment(new Date(run.started_at ?? run.created_at))}
      </td>
      <td className={numericCell}>{seconds !== null && tookWords(seconds, isEnded(run))}</td>
      <td className={numericCell} title={digest ? formatAmount(digest.steps, "step") : undefined}>
        {digest && formatCount(digest.steps)}
      </td>
      <td className={numericCell}>{digest && formatCount(tokensOf(digest.usage))}</td>
      <td className={numericCell}>{digest && costWords(digest.usage)}</td>
      <td className={styles.faint} title={models}>
        {models}
      </td>
      <td>
        <RunMenu run={run} onDelete={onDelete} />
      </td>
    </Row>
  );
}
