import { useState } from "react";
import { useNavigate } from "react-router";
import { useCreateChat, useSendMessage } from "@/api/chatMutations";
import { useProviders } from "@/api/queries";
import { showError } from "@/api/showError";
import { ModelPicker } from "@/screens/goal/ModelPicker";
import type { ModelChoice } from "@/screens/goal/providerChoice";
import { EmptyState } from "@/ui/EmptyState";
import { Icon } from "@/ui/icons";
import { usePageTitle } from "@/ui/pageTitle";
import { ChatOptions, type ChosenOptions, NO_OPTIONS } from "./ChatOptions";
import { Composer, type Said } from "./Composer";
import { FlowPicker } from "./FlowPicker";
import styles from "./NewChat.module.css";

const DEFAULT_MODEL: ModelChoice = { provider: null, model: null };

/** A chat that begins with its first message: with a model and its tools, or with a flow. */
export function NewChat() {
  const providers = useProviders();
  const [flowId, setFlowId] = useState<string | null>(null);
  const [model, setModel] = useState(DEFAULT_MODEL);
  const [options, setOptions] = useState<ChosenOptions>(NO_OPTIONS);
  const begin = useBegin();
  usePageTitle("Chat");
  const body = flowId
    ? { plan_id: flowId }
    : {
        config: {
          ...(model.provider && { provider: model.provider }),
          ...(model.model && { model: model.model }),
          ...(options.instructions && { instructions: options.instructions }),
          ...(options.tools.length > 0 && { tools: [...options.tools] }),
        },
      };
  return (
    <section className={styles.talk} aria-label="New chat">
      <div className={styles.empty}>
        <EmptyState sign={<Icon name="chat" />} title="Say something.">
          The answer streams here; what it thought and called is folded above it.
        </EmptyState>
      </div>
      <Composer placeholder="Ask something, or attach a file" onSend={(said) => begin(body, said)}>
        {flowId === null && providers.data && (
          <>
            <ModelPicker providers={providers.data.details} choice={model} onChange={setModel} />
            <ChatOptions options={options} onChange={setOptions} />
          </>
        )}
        {/* Last: what comes later moves nothing that a click is on its way to. */}
        <FlowPicker flowId={flowId} onChange={setFlowId} />
      </Composer>
    </section>
  );
}

/** Make the chat, send its first message, and open it. */
function useBegin() {
  const navigate = useNavigate();
  const create = useCreateChat();
  const send = useSendMessage();
  return async (body: Parameters<typeof create.mutateAsync>[0], said: Said): Promise<boolean> => {
    try {
      const { chat_id: chatId } = await create.mutateAsync(body);
      navigate(`/chat/${chatId}`);
      const message = { message: said.text, ...said.attachments };
      await send.mutateAsync({ chatId, body: message });
      return true;
    } catch (error) {
      showError(error);
      return false;
    }
  };
}
