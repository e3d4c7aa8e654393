import { useCreateLink } from "@/api/mutations";
import { showError } from "@/api/showError";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { TextField } from "@/ui/Field";
import { formatInstant } from "@/ui/format";

type OneTimeLinkProps = { executionId: string; requestId: string };

/** Makes a link with which somebody else can answer a request, once and without logging in. */
export function OneTimeLink({ executionId, requestId }: OneTimeLinkProps) {
  const create = useCreateLink(executionId);
  const make = () =>
    create.mutate(
      { kind: "request", request_id: requestId },
      { onSuccess: ({ url }) => copyText(url, "a one-time link"), onError: showError },
    );
  if (!create.data) {
    return (
      <Button
        kind="quiet"
        small
        icon="link"
        onClick={make}
        disabledReason={create.isPending ? "Making the link …" : undefined}
      >
        Copy a one-time link
      </Button>
    );
  }
  return (
    <TextField
      label="A link that answers once"
      hint={`Until ${formatInstant(new Date(create.data.expires_at))}. It is shown only now.`}
      readOnly
      value={create.data.url}
      onFocus={(event) => event.target.select()}
    />
  );
}
