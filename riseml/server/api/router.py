"""Every route below /v1, by subject. Commands write the user's intent and wake the loop; queries read the store."""

from __future__ import annotations

from fastapi import APIRouter

from riseml.server.api.capsule_routes import add_capsule_routes
from riseml.server.api.change_routes import add_change_routes
from riseml.server.api.clean_routes import add_clean_routes
from riseml.server.api.experiment_routes import add_experiment_routes
from riseml.server.api.failures import FAILURES
from riseml.server.api.file_routes import add_file_routes
from riseml.server.api.gpu_routes import add_gpu_routes
from riseml.server.api.guest_routes import add_guest_routes
from riseml.server.api.late_route import LateRoute
from riseml.server.api.line_routes import add_line_routes
from riseml.server.api.list_routes import add_list_routes
from riseml.server.api.log_routes import add_log_routes
from riseml.server.api.metric_routes import add_metric_routes
from riseml.server.api.name_routes import add_name_routes
from riseml.server.api.output_routes import add_output_routes
from riseml.server.api.pool_history_routes import add_pool_history_routes
from riseml.server.api.pool_routes import add_pool_routes
from riseml.server.api.remark_routes import add_remark_routes
from riseml.server.api.result_routes import add_result_routes
from riseml.server.api.sample_routes import add_sample_routes
from riseml.server.api.saved_routes import add_saved_routes
from riseml.server.api.server_routes import add_server_routes
from riseml.server.api.set_routes import add_set_routes
from riseml.server.api.stream_routes import add_stream_routes
from riseml.server.api.submission_routes import add_submission_routes
from riseml.server.api.trial_routes import add_trial_routes
from riseml.server.api.web_routes import add_web_routes
from riseml.server.services import Services


def make_router(services: Services) -> APIRouter:
    """Return the router of the whole API."""
    router = APIRouter(prefix="/v1", responses=FAILURES, route_class=LateRoute)
    add_server_routes(router, services)
    add_submission_routes(router, services)
    add_list_routes(router, services)
    add_experiment_routes(router, services)
    add_sample_routes(router, services)
    add_remark_routes(router, services)
    add_guest_routes(router, services)
    add_result_routes(router, services)
    add_capsule_routes(router, services)
    add_file_routes(router, services)
    add_saved_routes(router, services)
    add_output_routes(router, services)
    add_trial_routes(router, services)
    add_log_routes(router, services)
    add_line_routes(router, services)
    add_change_routes(router, services)
    add_metric_routes(router, services)
    add_set_routes(router, services)
    add_name_routes(router, services)
    add_stream_routes(router, services)
    add_pool_routes(router, services)
    add_pool_history_routes(router, services)
    add_gpu_routes(router, services)
    add_web_routes(router, services.web)
    add_clean_routes(router, services.cleaner)
    return router
