import * as wire from "@pulumi/pulumi/proto/provider_pb";
import { Change, CheckRequest, CheckResult, DiffRequest, DiffResult } from "./protocol";
import { decoded, encoded } from "./values";

interface Typed {
  getUrn(): string;
  getType(): string;
}

export const subject = (request: Typed, signal: AbortSignal) => ({
  urn: request.getUrn(),
  type: request.getType(),
  signal,
});

export const check = (request: wire.CheckRequest, signal: AbortSignal): CheckRequest => ({
  ...subject(request, signal),
  olds: decoded(request.getOlds()),
  news: decoded(request.getNews()),
});

export const diff = (
  request: wire.DiffRequest | wire.UpdateRequest,
  signal: AbortSignal,
): DiffRequest => ({
  ...subject(request, signal),
  id: request.getId(),
  state: decoded(request.getOlds()),
  olds: decoded(request.getOldInputs()),
  news: decoded(request.getNews()),
});

export function checked({ inputs, failures = [] }: CheckResult): wire.CheckResponse {
  const response = new wire.CheckResponse();
  response.setInputs(encoded(inputs));
  for (const { property, reason } of failures) {
    const failure = new wire.CheckFailure();
    failure.setProperty(property);
    failure.setReason(reason);
    response.addFailures(failure);
  }
  return response;
}

const { Kind } = wire.PropertyDiff;
const kinds: Record<Change["kind"], readonly [wire.PropertyDiff.Kind, wire.PropertyDiff.Kind]> = {
  add: [Kind.ADD, Kind.ADD_REPLACE],
  delete: [Kind.DELETE, Kind.DELETE_REPLACE],
  update: [Kind.UPDATE, Kind.UPDATE_REPLACE],
};

export function differing({ changes, deleteBeforeReplace = false }: DiffResult): wire.DiffResponse {
  const { DIFF_SOME, DIFF_NONE } = wire.DiffResponse.DiffChanges;
  const response = new wire.DiffResponse();
  response.setChanges(changes.length > 0 ? DIFF_SOME : DIFF_NONE);
  response.setDiffsList([...new Set(changes.map(({ path }) => path.split(/[.[]/)[0] ?? path))]);
  response.setReplacesList(changes.filter(({ replaces }) => replaces).map(({ path }) => path));
  response.setDeletebeforereplace(deleteBeforeReplace);
  response.setHasdetaileddiff(changes.length > 0);
  for (const { path, kind, replaces } of changes) {
    const detail = new wire.PropertyDiff();
    detail.setKind(kinds[kind][replaces ? 1 : 0]);
    detail.setInputdiff(true);
    response.getDetaileddiffMap().set(path, detail);
  }
  return response;
}
