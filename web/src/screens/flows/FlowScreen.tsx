import { useMemo, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { call } from "@/api/http";
import { useApproveRevision, useRestoreRevision } from "@/api/mutations";
import { useFlow } from "@/api/queries";
import { showError } from "@/api/showError";
import type { FlowResponse, RevisionSummary } from "@/api/types";
import { PlanLanes } from "@/canvas/PlanLanes";
import { ErrorNote } from "@/screens/ErrorNote";
import { viewOfPlan } from "@/screens/goal/planView";
import { Button, ButtonLink } from "@/ui/Button";
import { formatAmount, formatMoment } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Menu } from "@/ui/Menu";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Skeleton } from "@/ui/Skeleton";
import { saveJsonFile } from "@/ui/saveFile";
import { showToast } from "@/ui/toasts";
import { DeletePlan } from "./DeletePlan";
import { FlowRevisions } from "./FlowRevisions";
import { FlowRuns } from "./FlowRuns";
import styles from "./FlowScreen.module.css";
import { flowFile } from "./flowInputs";
import { draftWords } from "./planWords";
import { RenameFlow } from "./RenameFlow";
import { RunFlow } from "./RunFlow";

/** One flow: its steps, a form to run it, and its revisions. */
export function FlowScreen() {
  const { flowId = "" } = useParams();
  const flow = useFlow(flowId);
  usePageTitle(flow.data?.name ?? "Flow");
  if (flow.data) return <Flow key={flowId} flow={flow.data} />;
  return (
    <div className={styles.page}>
      <h1>Flow</h1>
      {flow.error ? (
        <ErrorNote error={flow.error} />
      ) : (
        <Skeleton label="Loading the flow" lines={6} />
      )}
      <Link to="/flows">All flows</Link>
    </div>
  );
}

function Flow({ flow }: { flow: FlowResponse }) {
  const [revision, setRevision] = useState<number | null>(null);
  const isOld = revision !== null && revision !== flow.revision;
  const old = useFlow(isOld ? flow.plan_id : null, revision);
  const shown = isOld ? old.data : flow;
  const view = useMemo(() => shown && viewOfPlan(shown.graph), [shown]);
  return (
    <div className={styles.page}>
      <Header flow={flow} />
      {isOld && old.data && (
        <OtherRevision flow={flow} other={old.data} onPresent={() => setRevision(null)} />
      )}
      {old.error && <ErrorNote error={old.error} />}
      {flow.draft && <FlowDraft flow={flow} draft={flow.draft} />}
      <div className={styles.columns}>
        <section className={styles.lanes} aria-label="Steps">
          {view ? (
            <PlanLanes steps={view.steps} edges={view.edges} />
          ) : (
            <Skeleton label="Loading the revision" lines={4} />
          )}
        </section>
        <aside className={styles.side} aria-label="Run and revisions">
          <section className={styles.card}>
            <h2>{isOld ? `Run revision ${old.data?.revision ?? ""}` : "Run it"}</h2>
            {shown && <RunFlow key={shown.revision} flow={shown} />}
          </section>
          <section className={styles.card}>
            <h2>Runs</h2>
            <FlowRuns planId={flow.plan_id} />
          </section>
          <section className={styles.card}>
            <h2>Revisions</h2>
            <FlowRevisions flow={flow} shown={shown?.revision ?? 0} onShow={setRevision} />
          </section>
        </aside>
      </div>
    </div>
  );
}

function Header({ flow }: { flow: FlowResponse }) {
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const navigate = useNavigate();
  const close = () => setDialog(null);
  return (
    <header className={styles.header}>
      <div className={styles.words}>
        <h1>{flow.name}</h1>
        {flow.description && <p>{flow.description}</p>}
        <p className={styles.faint}>
          {formatAmount(flow.graph.nodes.length, "step")}, revision {flow.revision}, saved{" "}
          {formatMoment(new Date(flow.updated_at))}
        </p>
      </div>
      <div className={styles.actions}>
        <ButtonLink icon="edit" to={`/flows/${flow.plan_id}/edit`}>
          Edit
        </ButtonLink>
        <Menu
          trigger={<IconButton icon="more" label="More" bordered />}
          items={[
            { label: "Name and purpose", icon: "text", onSelect: () => setDialog("rename") },
            {
              label: "Export as a file",
              icon: "download",
              onSelect: () => saveJsonFile(flowFile(flow), flow.name),
            },
            "line",
            { label: "Delete", icon: "trash", danger: true, onSelect: () => setDialog("delete") },
          ]}
        />
      </div>
      {dialog === "rename" && <RenameFlow flow={flow} onClose={close} />}
      {dialog === "delete" && (
        <DeletePlan
          plan={flow}
          title={flow.name}
          onClose={close}
          onDeleted={() => navigate("/flows")}
        />
      )}
    </header>
  );
}

/** Says that callers do not start the newest revision, and offers to approve it where that is all. */
function FlowDraft({ flow, draft }: { flow: FlowResponse; draft: RevisionSummary }) {
  const approving = useApproveRevision(flow.plan_id);
  const live = flow.live_revision;
  return (
    <Note kind="warning">
      {draftWords(draft)}. {live === null ? "Nobody can call" : `Callers start revision ${live} of`}{" "}
      the flow.{" "}
      {draft.error_count === 0 && (
        <Button
          small
          onClick={() =>
            approving.mutate({ hash: draft.hash, revision: draft.revision }, { onError: showError })
          }
        >
          Approve revision {draft.revision}
        </Button>
      )}
    </Note>
  );
}

type OtherRevisionProps = { flow: FlowResponse; other: FlowResponse; onPresent: () => void };

/** Says that another revision is shown, and offers to bring it back. */
function OtherRevision({ flow, other, onPresent }: OtherRevisionProps) {
  const restoring = useRestoreRevision(flow.plan_id);
  const restore = async () => {
    const plan = await call("getPlan", { path: { plan_id: flow.plan_id } });
    restoring.mutate(
      { hash: plan.hash, revision: other.revision },
      {
        onSuccess: (restored) => {
          showToast({ text: `Restored as revision ${restored.revision}` });
          onPresent();
        },
        onError: showError,
      },
    );
  };
  return (
    <Note>
      This is revision {other.revision}, not the present one.{" "}
      <Button small onClick={() => void restore().catch(showError)}>
        Restore it
      </Button>{" "}
      <Button small kind="quiet" onClick={onPresent}>
        Show the present one
      </Button>
    </Note>
  );
}
