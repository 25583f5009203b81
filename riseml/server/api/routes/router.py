"""Every route below /v1, by subject. Commands write the user's intent and wake the loop; queries read the store."""

from __future__ import annotations

from fastapi import APIRouter

from riseml.server.api.failures import FAILURES
from riseml.server.api.routes.account_routes import add_key_routes, add_project_routes, add_user_routes
from riseml.server.api.routes.annotation_routes import add_annotation_routes
from riseml.server.api.routes.audit_routes import add_audit_routes
from riseml.server.api.routes.diagnosis_routes import add_diagnosis_routes
from riseml.server.api.routes.experiment_routes import (
    add_experiment_routes,
    add_name_routes,
    add_set_routes,
    add_trial_routes,
)
from riseml.server.api.routes.file_routes import add_file_routes, add_output_routes, add_saved_routes
from riseml.server.api.routes.late_route import LateRoute
from riseml.server.api.routes.list_routes import add_list_routes, add_result_routes
from riseml.server.api.routes.log_routes import add_line_routes, add_log_routes
from riseml.server.api.routes.media_routes import add_media_routes
from riseml.server.api.routes.pool_routes import (
    add_clean_routes,
    add_gpu_routes,
    add_pool_history_routes,
    add_pool_routes,
)
from riseml.server.api.routes.quota_routes import add_quota_routes
from riseml.server.api.routes.report_routes import add_report_routes
from riseml.server.api.routes.sample_routes import add_metric_routes, add_sample_routes, add_straggler_routes
from riseml.server.api.routes.search_routes import add_search_routes
from riseml.server.api.routes.secret_routes import add_secret_routes
from riseml.server.api.routes.server_routes import add_change_routes, add_server_routes, add_web_routes
from riseml.server.api.routes.session_routes import add_session_routes
from riseml.server.api.routes.stack_routes import add_stack_routes
from riseml.server.api.routes.stream_routes import add_proxied_app_routes, add_stream_routes
from riseml.server.api.routes.submission_routes import add_capsule_routes, add_submission_routes
from riseml.server.api.routes.table_routes import add_table_routes
from riseml.server.api.routes.view_routes import add_view_routes
from riseml.server.services import Services


def make_router(services: Services) -> APIRouter:
    """Return the router of the whole API."""
    router = APIRouter(prefix="/v1", responses=FAILURES, route_class=LateRoute)
    add_server_routes(router, services)
    add_submission_routes(router, services)
    add_list_routes(router, services)
    add_experiment_routes(router, services)
    add_diagnosis_routes(router, services)
    add_sample_routes(router, services)
    add_straggler_routes(router, services)
    add_proxied_app_routes(router, services)
    add_result_routes(router, services.stores)
    add_table_routes(router, services)
    add_view_routes(router, services.stores)
    add_report_routes(router, services.stores)
    add_capsule_routes(router, services)
    add_file_routes(router, services)
    add_media_routes(router, services)
    add_saved_routes(router, services)
    add_output_routes(router, services)
    add_annotation_routes(router, services)
    add_trial_routes(router, services)
    add_search_routes(router, services)
    add_log_routes(router, services)
    add_line_routes(router, services.stores)
    add_change_routes(router, services)
    add_session_routes(router, services.stores.sessions)
    add_metric_routes(router, services.stores)
    add_set_routes(router, services.stores)
    add_name_routes(router, services.stores)
    add_stream_routes(router, services)
    add_stack_routes(router, services)
    add_pool_routes(router, services)
    add_quota_routes(router, services)
    add_pool_history_routes(router, services)
    add_gpu_routes(router, services)
    add_web_routes(router, services.web, is_team=services.config is not None)
    add_audit_routes(router, services)
    add_secret_routes(router, services)
    add_clean_routes(router, services.data.cleaner, services.data.disks)
    add_user_routes(router, services)
    add_key_routes(router, services)
    add_project_routes(router, services)
    return router
