import { Link, useNavigate } from "react-router";
import type { PlanSummary } from "@/api/types";
import { ButtonLink } from "@/ui/Button";
import { formatAmount, formatCount, formatMoment } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Menu } from "@/ui/Menu";
import { principalWords } from "@/ui/principalWords";
import { Status } from "@/ui/Status";
import { numericCell, Row, Table } from "@/ui/Table";
import { Tag } from "@/ui/Tag";
import styles from "./PlanTable.module.css";
import { draftWords, editPath, isDraft, nameOf, planPath, purposeOf } from "./planWords";

const COLUMNS = [
  { label: "Name or title" },
  { label: "What it is for" },
  { label: "Last run", width: "124px" },
  { label: "Steps", width: "64px", numeric: true },
  { label: "Revision", width: "80px", numeric: true },
  { label: "Changed", width: "100px" },
  { label: "By", width: "164px" },
  { label: "Actions", width: "128px", hiddenLabel: true },
] as const;

type PlanTableProps = {
  label: string;
  plans: readonly PlanSummary[];
  onName: (plan: PlanSummary) => void;
  onDelete: (plan: PlanSummary) => void;
  rememberLink: (id: string, link: HTMLAnchorElement | null) => void;
};

/** Stored graphs, one in a row, with a name or without; on a phone a row has two lines. */
export function PlanTable({ label, plans, onName, onDelete, rememberLink }: PlanTableProps) {
  return (
    <div className={styles.plans}>
      <Table label={label} columns={COLUMNS}>
        {plans.map((plan) => (
          <PlanRow
            key={plan.plan_id}
            plan={plan}
            onName={() => onName(plan)}
            onDelete={() => onDelete(plan)}
            linkRef={(link) => rememberLink(plan.plan_id, link)}
          />
        ))}
      </Table>
    </div>
  );
}

type PlanRowProps = {
  plan: PlanSummary;
  onName: () => void;
  onDelete: () => void;
  linkRef: (link: HTMLAnchorElement | null) => void;
};

function PlanRow({ plan, onName, onDelete, linkRef }: PlanRowProps) {
  const { status, updated_at, updated_by } = plan;
  const name = nameOf(plan);
  const author = updated_by ? principalWords(updated_by) : "";
  return (
    <Row>
      <td>
        <Link ref={linkRef} className={styles.name} to={planPath(plan)} title={name}>
          {name}
        </Link>
      </td>
      <td className={styles.purpose} title={purposeOf(plan)}>
        {isDraft(plan) && <Tag>{draftWords(plan)}</Tag>}
        {plan.published.length > 0 && <Tag>{`Published as ${plan.published.join(", ")}`}</Tag>}
        <span>{purposeOf(plan)}</span>
      </td>
      <td>
        {status === "draft" ? (
          <Status status="draft">Not run yet</Status>
        ) : (
          <Status status={status} />
        )}
      </td>
      <td className={numericCell} title={formatAmount(plan.node_count, "step")}>
        {formatCount(plan.node_count)}
      </td>
      <td className={numericCell}>{plan.revision}</td>
      <td className={styles.faint} title={new Date(updated_at).toLocaleString("en-GB")}>
        {formatMoment(new Date(updated_at))}
      </td>
      <td className={styles.faint} title={author}>
        {author}
      </td>
      <td>
        <span className={styles.actions}>
          <ButtonLink small icon="play" to={planPath(plan)} aria-label={`Run ${name}`}>
            Run
          </ButtonLink>
          <PlanMenu plan={plan} onName={onName} onDelete={onDelete} />
        </span>
      </td>
    </Row>
  );
}

/** What can be done with a stored graph of the list. */
function PlanMenu({ plan, onName, onDelete }: Omit<PlanRowProps, "linkRef">) {
  const navigate = useNavigate();
  return (
    <Menu
      trigger={<IconButton icon="more" label={`More for ${nameOf(plan)}`} small />}
      items={[
        { label: "Edit", icon: "edit", onSelect: () => navigate(editPath(plan)) },
        {
          label: "Save as flow",
          icon: "flow",
          disabledReason: plan.name === null ? undefined : "It has a name",
          onSelect: onName,
        },
        "line",
        { label: "Delete", icon: "trash", danger: true, onSelect: onDelete },
      ]}
    />
  );
}
