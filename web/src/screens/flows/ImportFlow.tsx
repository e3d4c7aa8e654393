import { useNavigate } from "react-router";
import { ApiError } from "@/api/http";
import { useCreateFlow } from "@/api/mutations";
import type { NamedGraph } from "@/screens/import/importSource";
import { LazyImportDialog } from "@/screens/import/LazyImportDialog";

/** Names that are tried: the one of the file, then others with a number. */
const MOST_NAMES = 20;

/** Makes a flow of a file. One of another program is looked at first, and opened in the editor if wanted. */
export function ImportFlow({ onClose }: { onClose: () => void }) {
  const { mutateAsync: create } = useCreateFlow();
  const navigate = useNavigate();
  const show = (flowId: string) => navigate(`/flows/${flowId}`);
  const edit = async (graph: NamedGraph) => {
    const flow = await underFreeName(graph.name, (name) =>
      create({ ...bodyOf(graph), name, draft: true }),
    );
    navigate(`/flows/${flow.plan_id}/edit`);
  };
  return (
    <LazyImportDialog
      onOwn={async (graph) => {
        try {
          show((await create(bodyOf(graph))).plan_id);
        } catch (error) {
          if (!(error instanceof ApiError) || error.code !== "graph-invalid") throw error;
          await edit(graph); // the editor says what is wrong with it
        }
      }}
      onSave={async (graph) => show((await create({ ...bodyOf(graph), draft: true })).plan_id)}
      onSaved={show}
      onOpen={edit}
      onClose={onClose}
    />
  );
}

/** Returns the flow that is made of a graph; its plan keeps the report of the import. */
function bodyOf({ name, description, graph, report }: NamedGraph) {
  return { name, description, graph: report ? { ...graph, imported_from: { report } } : graph };
}

/** Makes something under a name, or under one like it where that is taken. */
async function underFreeName<Made>(name: string, make: (name: string) => Promise<Made>) {
  for (let number = 1; ; number++) {
    try {
      return await make(number === 1 ? name : `${name} (${number})`);
    } catch (error) {
      const isTaken = error instanceof ApiError && error.code === "name-taken";
      if (!isTaken || number === MOST_NAMES) throw error;
    }
  }
}
