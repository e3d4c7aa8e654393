import { useNavigate } from "react-router";
import { useCreateFlow } from "@/api/mutations";
import type { NamedGraph } from "@/screens/import/importSource";
import { LazyImportDialog } from "@/screens/import/LazyImportDialog";
import { showToast } from "@/ui/toasts";
import type { EditorStore } from "./editorStore";
import { readPlan } from "./readPlan";

/** Puts the graph of a file in place of the one that is edited, or makes a flow of it. */
export function ImportPlan({ store, onClose }: { store: EditorStore; onClose: () => void }) {
  const create = useCreateFlow();
  const navigate = useNavigate();
  const replace = async ({ title, graph, report }: NamedGraph) => {
    const read = readPlan(graph);
    if ("problem" in read) throw new Error(read.problem);
    const { content } = store.getState();
    store.change({ title: title ?? content.title, graph: read.graph, imported: report });
    store.select([]);
  };
  const say = (flowId: string, name: string) =>
    showToast({
      text: `Saved as the flow “${name}”.`,
      action: { label: "Open it", onSelect: () => navigate(`/flows/${flowId}`) },
    });
  return (
    <LazyImportDialog
      onOwn={replace}
      onOpen={replace}
      onSave={async ({ name, description, graph }) => {
        const flow = await create.mutateAsync({ name, description, graph, draft: true });
        say(flow.plan_id, flow.name);
      }}
      onSaved={say}
      onClose={onClose}
    />
  );
}
