import type { ComponentProps } from "react";
import { Link } from "react-router";
import {
  costWithPlanning,
  isEnded,
  secondsOf,
  statusesByWave,
  titleOf,
  tokensOf,
} from "@/api/executionSummary";
import { useCancel } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { ExecutionSummary } from "@/api/types";
import { RunStatus } from "@/canvas/RunStatus";
import { RunInputs } from "@/canvas/RunTitle";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import { SIDES, SideMark } from "@/screens/compare/SideMark";
import type { Ticks } from "@/screens/compare/ticks";
import { RunMenu } from "@/screens/runs/RunMenu";
import styles from "@/screens/runs/RunTable.module.css";
import type { RunFilters, Sort } from "@/screens/runs/runFilters";
import { costParts, costWords, tookWords } from "@/screens/runs/runWords";
import { formatAmount, formatCount, formatMoment } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import { Checkbox } from "@/ui/Switch";
import { numericCell, Row, Table } from "@/ui/Table";
import { Tag, Tags } from "@/ui/Tag";
import { useNow } from "@/ui/useNow";

const COLUMNS: readonly (ComponentProps<typeof Table>["columns"][number] & { sort?: Sort })[] = [
  { label: "Compare", width: "56px", hiddenLabel: true },
  { label: "Status", width: "140px" },
  { label: "Run", sort: "name" },
  { label: "Waves", width: "84px" },
  { label: "Started", width: "100px", sort: "created" },
  { label: "Took", width: "80px", numeric: true, sort: "duration" },
  { label: "Steps", width: "64px", numeric: true },
  { label: "Tokens", width: "84px", numeric: true, sort: "tokens" },
  { label: "Cost", width: "96px", numeric: true, sort: "cost" },
  { label: "Model", width: "148px" },
  { label: "More", width: "96px", hiddenLabel: true },
];

interface RunTableProps {
  executions: readonly ExecutionSummary[];
  ticks: Ticks;
  onTick: (id: string) => void;
  /** The runs that something is done with at once; null while runs are ticked for a comparison. */
  selected: ReadonlySet<string> | null;
  onSelect: (id: string) => void;
  sort: Pick<RunFilters, "sort" | "order">;
  onSort: (sort: Pick<RunFilters, "sort" | "order">) => void;
  onLabel: (run: ExecutionSummary) => void;
  onDelete: (run: ExecutionSummary) => void;
  rememberLink: (id: string, link: HTMLAnchorElement | null) => void;
}

/** The runs, one in a row; on a phone a row has two lines. */
export function RunTable({ executions, selected, ...props }: RunTableProps) {
  const columns = COLUMNS.map(({ sort, ...column }) =>
    sort === undefined ? column : { ...column, ...sortOf(sort, props.sort, props.onSort) },
  );
  return (
    <div className={styles.runs}>
      <Table label="Runs" columns={columns}>
        {executions.map((run) => (
          <RunRow
            key={run.execution_id}
            run={run}
            tick={selected ? -1 : props.ticks.indexOf(run.execution_id)}
            selected={selected?.has(run.execution_id) ?? null}
            onTick={() => (selected ? props.onSelect : props.onTick)(run.execution_id)}
            onLabel={() => props.onLabel(run)}
            onDelete={() => props.onDelete(run)}
            linkRef={(link) => props.rememberLink(run.execution_id, link)}
          />
        ))}
      </Table>
    </div>
  );
}

/** How a column is sorted, and what another click does: names begin with A, all else with the most. */
function sortOf(
  by: Sort,
  now: Pick<RunFilters, "sort" | "order">,
  onSort: RunTableProps["onSort"],
): Pick<ComponentProps<typeof Table>["columns"][number], "sorted" | "onSort"> {
  const isSorted = now.sort === by;
  const first = by === "name" ? ("asc" as const) : ("desc" as const);
  const other = now.order === "asc" ? ("desc" as const) : ("asc" as const);
  return {
    sorted: isSorted ? (now.order === "asc" ? "ascending" : "descending") : null,
    onSort: () => onSort({ sort: by, order: isSorted ? other : first }),
  };
}

interface RunRowProps {
  run: ExecutionSummary;
  /** 0 for A, 1 for B, -1 for neither. */
  tick: number;
  /** Null while nothing is selected. */
  selected: boolean | null;
  onTick: () => void;
  onLabel: () => void;
  onDelete: () => void;
  linkRef: (link: HTMLAnchorElement | null) => void;
}

function RunRow({ run, tick, selected, onTick, onLabel, onDelete, linkRef }: RunRowProps) {
  const seconds = secondsOf(run, useNow(!isEnded(run)));
  const { digest } = run;
  const side = SIDES[tick];
  const title = titleOf(run);
  const models = digest?.models.join(", ") ?? "";
  return (
    <Row chosen={side !== undefined || selected === true}>
      <td>
        <Checkbox
          label={`${selected === null ? "Compare" : "Select"} ${title}`}
          hiddenLabel
          checked={selected ?? tick >= 0}
          onChange={onTick}
        />
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
            title={run.note ? `${title}\n${run.note}` : title}
          >
            {title}
          </Link>
          {run.starred && <Icon name="starred" small />}
          <Tags className={styles.tags} title={run.tags.join(", ")}>
            {run.tags.map((tag) => (
              <Link key={tag} to={`/runs?tag=${encodeURIComponent(tag)}`}>
                <Tag>{tag}</Tag>
              </Link>
            ))}
          </Tags>
          <RunInputs run={run} />
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
      <td
        className={numericCell}
        title={digest ? costParts(digest.usage, run.planning) : undefined}
      >
        {digest && costWords({ cost_usd: costWithPlanning(digest.usage.cost_usd, run.planning) })}
      </td>
      <td className={styles.faint} title={models}>
        {models}
      </td>
      <td>
        {!isEnded(run) && <StopRun run={run} />}
        <RunMenu run={run} onLabel={onLabel} onDelete={onDelete} />
      </td>
    </Row>
  );
}

/** Stops a run with one click: what it has done stays, and the rest can be run later. */
function StopRun({ run }: { run: ExecutionSummary }) {
  const cancel = useCancel(run.execution_id);
  return (
    <IconButton
      icon="stop"
      label={`Stop ${titleOf(run)}`}
      small
      disabled={cancel.isPending}
      onClick={() => cancel.mutate({}, { onError: showError })}
    />
  );
}
