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
  return (
    <LazyImportDialog
      onOwn={async (graph) => show((await create(bodyOf(graph))).plan_id)}
      onSave={async (graph) => show((await create({ ...bodyOf(graph), draft: true })).plan_id)}
      onSaved={show}
      onOpen={async (graph) => {
        const flow = await underFreeName(graph.name, (name) =>
          create({ ...bodyOf(graph), name, draft: true }),
        );
        navigate(`/flows/${flow.plan_id}/edit`);
      }}
      onClose={onClose}
    />
  );
}

function bodyOf({ name, description, graph }: NamedGraph) {
  return { name, description, graph };
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
